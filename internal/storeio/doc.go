// Package storeio is the local file system of the warehouse: it answers "are these bytes on disk yet, and what did it cost?".
package storeio
