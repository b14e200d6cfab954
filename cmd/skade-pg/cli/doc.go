// Package cli is the command line of skade-pg: one subcommand a file, the configuration they share, and the wiring of the
// layers into a running server.
//
// Words:
//
//	Config  every option, from flags, environment (SKADE_PG_…) and one file, in that order of precedence
//	Server  the layers wired together: Start, Addr, Run, Close; tests start the same one on 127.0.0.1:0
//
// Exit codes: 0 done, 1 failed, 2 the command line is wrong.
package cli
