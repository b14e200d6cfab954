package test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain: after all that the tests did to their servers no goroutine is left.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
