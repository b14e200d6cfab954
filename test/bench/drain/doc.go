// Command drain is the benchmarks' client for large results: it runs one statement with the extended protocol and reads every
// DataRow without decoding values, so that what is measured is the server. It prints one line
//
//	rows bytes seconds sum
//
// where sum is the sum of the rows' CRC-32C, independent of their order: two servers that send the same rows, byte for byte,
// print the same sum.
package main
