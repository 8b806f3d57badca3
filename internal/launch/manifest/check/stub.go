//go:build !manifests

// Command check has no code without the tag manifests, whose dependencies are in a module file of its own:
// see main.go.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "build this with -modfile=check.mod -tags manifests")
	os.Exit(1)
}
