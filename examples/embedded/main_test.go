package main

import (
	"context"
	"fmt"
	"os"
)

func Example() {
	dir, err := os.MkdirTemp("", "embedded-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := run(context.Background(), dir, os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// commit 1: 3 rows
	// changes
	//   seq 1 row 0: INSERT        1 anvil
	//   seq 1 row 1: INSERT        2 bolt
	//   seq 1 row 2: INSERT        3 crate
	//   seq 2 row 0: UPDATE_BEFORE 2 bolt
	//   seq 2 row 1: UPDATE_AFTER  2 brass bolt
	//   seq 2 row 2: INSERT        4 drill
	// net effect
	//   seq 1 row 0: INSERT        1 anvil
	//   seq 1 row 2: INSERT        3 crate
	//   seq 2 row 1: INSERT        2 brass bolt
	//   seq 2 row 2: INSERT        4 drill
	// as of seq 1, id 2: bolt
	// as of seq 1, id 4: no row
	// as of seq 2, id 2: brass bolt
	// as of seq 2, id 4: drill
}
