// Package deps keeps the modules of the product in go.mod while the packages that use them are being written.
package deps
