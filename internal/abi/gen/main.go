// Command gen writes what follows from include/mpi.h and the exported functions of
// cmd/libmpi: the C functions of the library, the table of those that are
// implemented, and what Fortran has of both; most exported functions, which follow from mpi.h and
// the tables of internal/abi; and the non-blocking collective operations of Go, which follow from the blocking ones.
// go generate ./internal/abi runs it.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/openimpi/impi/internal/abi"
)

func main() {
	check := flag.Bool("check", false, "write nothing; fail if a file is out of date")
	root := flag.String("root", "../..", "the root of the repository")
	flag.Parse()
	if err := run(*root, *check); err != nil {
		fmt.Fprintf(os.Stderr, "gen: %v\n", err)
		os.Exit(1)
	}
}

func run(root string, check bool) error {
	files, err := abi.Generate(os.DirFS(root))
	if err != nil {
		return err
	}
	fortran, err := abi.GenerateFortran(os.DirFS(root))
	if err != nil {
		return err
	}
	maps.Copy(files, fortran)
	nonblocking, err := abi.GenerateNonblocking(os.DirFS(root))
	if err != nil {
		return err
	}
	maps.Copy(files, nonblocking)
	for name, text := range files {
		path := filepath.Join(root, name)
		if old, err := os.ReadFile(path); err == nil && string(old) == text {
			continue
		}
		if check {
			return fmt.Errorf("%s is out of date: go generate ./internal/abi", name)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
