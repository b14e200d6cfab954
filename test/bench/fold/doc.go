// Command fold folds change rows in memory, as P5 of the benchmarks: changelog's Collapse with all cores and with one, and
// a hash map of keys as a program would write it.
//
// It makes the rows once, prints "ready", then folds for each line it reads (parallel, one or serial) and answers with the
// nanoseconds it took, those that cores spent on it (0: not measured) and an aggregate of the rows. It holds all rows in memory and writes nothing.
package main
