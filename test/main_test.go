package test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/nordisk/skade-pg/cmd/skade-pg/cli"
)

// serveFolder is the folder that a test binary serves, until it is killed, instead of running tests.
const serveFolder = "SKADE_TEST_SERVE"

// serveHeap and serveTemp are that server's --heap-limit, which is its --memory-limit too, and --temp-limit.
const (
	serveHeap = "SKADE_TEST_SERVE_HEAP"
	serveTemp = "SKADE_TEST_SERVE_TEMP"
)

// TestMain: after all that the tests did to their servers no goroutine is left.
func TestMain(m *testing.M) {
	if dir := os.Getenv(serveFolder); dir != "" {
		srv, err := cli.Start(context.Background(), &cli.Config{Data: dir, Listen: "127.0.0.1:0", Database: "skade", MaxConnections: 20, DrainSeconds: 5,
			HeapLimit: os.Getenv(serveHeap), MemoryLimit: os.Getenv(serveHeap), TempLimit: os.Getenv(serveTemp)}, zerolog.Nop())
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(srv.URL())
		select {}
	}
	goleak.VerifyTestMain(m)
}
