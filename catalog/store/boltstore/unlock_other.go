//go:build !unix

package boltstore

import "os"

func unlock(*os.File) {}
