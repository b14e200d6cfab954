// Package test holds what judges the whole repository: the layout's rules, the end-to-end suite that starts the real
// gateway and talks to it through pgx, and the outside judges (clients/, bench/) that Makefile targets run.
package test
