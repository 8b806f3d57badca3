//go:build !manifests

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "build this with -modfile=check.mod -tags manifests")
	os.Exit(1)
}
