//go:build !386 && !arm

// Command gen writes what is generated in this repository from include/mpi.h, the exported
// functions of cmd/libmpi and the tables of internal/abi. go generate ./internal/abi runs it.
//
//   - Of mpi.h and the exported functions: the C functions of the library, the table of those that
//     are implemented, Fortran's interfaces, and the error classes of core/mpierr.
//   - Of mpi.h and the other tables: most of the exported functions themselves.
//   - Of face.txt: the functions and methods of core/mpi, and the engine's collective operations.
//   - Of names.txt: types, constants and errors that core/mpi has by the names of others.
//   - Of the Go types of memory that C code shares (docs/shared-memory.md): C's headers.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/openimpi/impi/internal/abi"
	"github.com/openimpi/impi/internal/abi/layout"
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
	tree := os.DirFS(root)
	for _, generate := range []func() (map[string]string, error){
		abi.Face,
		abi.Operations,
		func() (map[string]string, error) { return abi.Names(tree) },
		func() (map[string]string, error) { return abi.Generate(tree) },
		func() (map[string]string, error) { return abi.GenerateFortran(tree) },
		func() (map[string]string, error) { return layout.Generate(tree) },
	} {
		files, err := generate()
		if err != nil {
			return err
		}
		if err := write(root, files, check); err != nil {
			return err
		}
	}
	return nil
}

// write writes the files whose content has changed; with check it returns an error for one instead.
func write(root string, files map[string]string, check bool) error {
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
