//go:build cgo && linux

package native

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/skips"
)

// TestLoadRefuses: a file that is no shim of this release is told from one.
func TestLoadRefuses(t *testing.T) {
	if _, err := exec.LookPath("cc"); err != nil {
		skips.NotRun(t, "there is no cc", "apt-get install gcc")
	}
	const table = `#include "shim.h"
#include <string.h>
static int version(char *text, int room, int *standard) { strncpy(text, "%[3]s", room); *standard = 3; return %[4]d; }
static int describe(int error, char *text, int room) { strncpy(text, "it is ill", room); return 0; }
const struct impi_native impi_native = {.abi = IMPI_NATIVE_ABI + %[1]d, .size = sizeof(struct impi_native) + %[2]d, .version = version, .describe = describe, %[5]s};
`
	ofFamily := func(text, more string) string { return fmt.Sprintf(table, 0, 0, text, 0, more) }
	const (
		openMPI, mpich = ".family = IMPI_NATIVE_OPEN_MPI, .standard = 3", ".family = IMPI_NATIVE_MPICH, .standard = 3"
		remedy         = ": load the module again by whose mpicc it was compiled, or build it by the mpicc of the one that is loaded"
	)
	for name, c := range map[string]struct {
		source string
		says   string
		err    error
	}{
		"a shim":               {fmt.Sprintf(table, 0, 0, "Some MPI 1.2", 0, ""), "", nil},
		"another version":      {fmt.Sprintf(table, 1, 0, "Some MPI 1.2", 0, ""), "has version 7 of the functions, this program wants 6: build it anew", ErrNoLibrary},
		"another size":         {fmt.Sprintf(table, 0, 8, "Some MPI 1.2", 0, ""), "build it anew", ErrNoLibrary},
		"ours":                 {fmt.Sprintf(table, 0, 0, "impi 1.2", 0, ""), "was built with our own impicc: build it with the mpicc of the site's MPI", ErrNoLibrary},
		"ill":                  {fmt.Sprintf(table, 0, 0, "Some MPI 1.2", 15, ""), "MPI_Get_library_version of : it is ill", ErrFailed},
		"for Open MPI":         {ofFamily("Open MPI v4.1.4, package: Debian", openMPI), "", nil},
		"for MPICH":            {ofFamily("MPICH Version: 4.0.2", mpich), "", nil},
		"MPICH's kin":          {ofFamily("Intel(R) MPI Library 2021.9 for Linux* OS", mpich), "", nil},
		"MPICH's for Open MPI": {ofFamily("Open MPI v1.10.7, package: Debian", mpich), " was compiled for MPICH or its kin, and the library that was loaded for it is Open MPI v1.10.7, package: Debian" + remedy, ErrNoLibrary},
		"Open MPI's for Intel": {ofFamily("Intel(R) MPI Library 2021.9 for Linux* OS", openMPI), " was compiled for Open MPI, and the library that was loaded for it is Intel(R) MPI Library 2021.9 for Linux* OS" + remedy, ErrNoLibrary},
		"of an older standard": {ofFamily("MPICH Version: 3.4", ".family = IMPI_NATIVE_MPICH, .standard = 4"), " was compiled for an MPI of version 4 of the standard, and MPICH Version: 3.4 has version 3" + remedy, ErrNoLibrary},
		"no table":             {"int nothing;", "undefined symbol: impi_native", ErrNoLibrary},
		"no library":           {"", "cannot open shared object file", ErrNoLibrary},
	} {
		dir := t.TempDir()
		shim := filepath.Join(dir, "shim.so")
		if c.source != "" {
			if err := os.WriteFile(filepath.Join(dir, "shim.c"), []byte(c.source), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.CommandContext(t.Context(), "cc", "-shared", "-fPIC", "-Ishim", "-o", shim, filepath.Join(dir, "shim.c")).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		l, err := Load(shim)
		switch {
		case !errors.Is(err, c.err) || c.err != nil && !strings.Contains(err.Error(), c.says):
			t.Errorf("%s: %v, want %q", name, err, c.says)
		case c.err == nil && (l.Text == "" || !strings.Contains(c.source, l.Text)):
			t.Errorf("%s: it is %q", name, l.Text)
		}
	}
}
