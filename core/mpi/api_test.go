package mpi_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/exported"
)

var updateAPI = flag.Bool("update", false, "write testdata/api.txt")

const apiFile = "testdata/api.txt"

// TestAPI holds the exported names of this package, with their methods and signatures, against
// testdata/api.txt: programs are compiled against them. A name that is lost or has another form
// breaks programs. One that is new is written there by go test -run TestAPI -update ./core/mpi.
func TestAPI(t *testing.T) {
	packages, err := exported.Load(".")
	if err != nil {
		t.Fatal(err)
	}
	got, err := packages.Lines("github.com/openimpi/impi/core/mpi")
	if err != nil {
		t.Fatal(err)
	}
	if *updateAPI {
		if err := os.WriteFile(apiFile, []byte(strings.Join(got, "\n")+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(apiFile)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(file)), "\n")
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("lost: %s", line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("new, see -update: %s", line)
		}
	}
}
