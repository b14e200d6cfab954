// Command listen stands for clients that LISTEN, for the benchmarks: many sessions that take what they are told at little cost, some that never
// read, and the time from a commit to its notification.
package main
