package peers

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/ctest"
	"github.com/openimpi/impi/internal/soak"
)

// netPIPERuns are ways in which NetPIPE checks what arrives. Its other ways measure, or
// compare what has not been sent, as getting with -g does; and puts with -I go outside of
// the window that it makes.
var netPIPERuns = map[string][]string{
	"blocking":                      {"NPmpi"},
	"preposted and from any source": {"NPmpi", "-a", "-z"},
	"synchronous":                   {"NPmpi", "-S"},
	"one direction":                 {"NPmpi", "-s"},
	"always other memory":           {"NPmpi", "-I"},
	"put and fence":                 {"NPmpi2"},
}

// netPIPELargest is the length of the longest message, in bytes.
const netPIPELargest = 1<<20 + 1

// buildNetPIPE compiles NetPIPE with our library, or ends the test.
func buildNetPIPE(t *testing.T, k *ctest.Kit) (dir string) {
	t.Helper()
	archive, err := NetPIPE.Find()
	if err != nil {
		notThere(t, err)
	}
	dir = t.TempDir()
	if _, err := ctest.Run(t.Context(), dir, nil, "tar", "-xf", archive, "--strip-components=1", "--no-same-owner"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "src", "mpi2.c")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// It passes NULL as an info object, which no MPI needs to accept.
	mended := bytes.Replace(text, []byte("1, NULL, MPI_COMM_WORLD"), []byte("1, MPI_INFO_NULL, MPI_COMM_WORLD"), 1)
	if bytes.Equal(text, mended) {
		t.Fatal("mpi2.c: no NULL as an info object")
	}
	if err := os.WriteFile(file, mended, 0o600); err != nil {
		t.Fatal(err)
	}
	wrapper := k.Command("impicc")
	if _, err := ctest.Run(t.Context(), dir, nil, "make", "mpi", "mpi2", "CFLAGS=-O1 -w",
		"MPICC="+wrapper, "MPI2CC="+wrapper, "MPI2_INC=src"); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestNetPIPE has NetPIPE check messages of 5 bytes to 1 MiB between two procs.
func TestNetPIPE(t *testing.T) {
	if _, err := NetPIPE.Find(); err != nil {
		notThere(t, err)
	}
	needC(t)
	k := &ctest.Kit{Dir: ownCDir}
	if given := os.Getenv(ctest.Installed); given != "" {
		k.Dir = given
	}
	bin := buildNetPIPE(t, k)
	for name, words := range netPIPERuns {
		for sites, where := range []string{1: "one site", 2: "two sites"} {
			if where == "" {
				continue
			}
			t.Run(name+" "+where, func(t *testing.T) {
				if sites == 1 {
					soak.SkipUnlessSoak(t, "make test has it on two sites")
				}
				t.Parallel()
				dir := t.TempDir()
				args := append(words[1:len(words):len(words)], "-i", "-n", "20", "-o", "/dev/null", "-u", strconv.Itoa(netPIPELargest))
				job := suiteRun{procs: 2, args: args}.job(filepath.Join(bin, words[0]), make([]string, sites)...)
				if err := os.WriteFile(filepath.Join(dir, "job.hcl"), []byte(job), 0o600); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				out, err := ctest.Run(ctx, dir, nil, k.Command("impi-node"), "-config", "job.hcl")
				if err != nil {
					t.Fatal(err)
				}
				if n := strings.Count(out, "Integrity check passed"); n < 36 || !strings.Contains(out, fmt.Sprintf(": %7d bytes", netPIPELargest)) {
					t.Errorf("%d lengths passed, or the longest was not among them\n%s", n, out)
				}
			})
		}
	}
}
