// Command skade-pg serves a warehouse of Apache Iceberg tables to PostgreSQL clients.
package main

import (
	"os"

	"github.com/nordisk/skade-pg/cmd/skade-pg/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr))
}
