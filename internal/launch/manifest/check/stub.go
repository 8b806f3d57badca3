//go:build !manifests

// Command check does nothing without the tag manifests: see main.go, whose dependencies are in
// check.mod.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "build this with -modfile=check.mod -tags manifests")
	os.Exit(1)
}
