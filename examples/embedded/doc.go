// Command embedded uses the cores of skade-pg as a library, without a server and without cgo: it creates a table,
// upserts rows, reads the changes of each commit and looks keys up, now and as of an earlier commit.
package main
