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
static int version(char *text, int room) { strncpy(text, "%[3]s", room); return %[4]d; }
static int describe(int error, char *text, int room) { strncpy(text, "it is ill", room); return 0; }
const struct impi_native impi_native = {.abi = IMPI_NATIVE_ABI + %[1]d, .size = sizeof(struct impi_native) + %[2]d, .version = version, .describe = describe};
`
	for name, c := range map[string]struct {
		source string
		says   string
		err    error
	}{
		"a shim":          {fmt.Sprintf(table, 0, 0, "Some MPI 1.2", 0), "", nil},
		"another version": {fmt.Sprintf(table, 1, 0, "Some MPI 1.2", 0), "has version 6 of the functions, this program wants 5: build it anew", ErrNoLibrary},
		"another size":    {fmt.Sprintf(table, 0, 8, "Some MPI 1.2", 0), "build it anew", ErrNoLibrary},
		"ours":            {fmt.Sprintf(table, 0, 0, "impi 1.2", 0), "was built with our own impicc: build it with the mpicc of the site's MPI", ErrNoLibrary},
		"ill":             {fmt.Sprintf(table, 0, 0, "Some MPI 1.2", 15), "MPI_Get_library_version of : it is ill", ErrFailed},
		"no table":        {"int nothing;", "undefined symbol: impi_native", ErrNoLibrary},
		"no library":      {"", "cannot open shared object file", ErrNoLibrary},
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
		case c.err == nil && l.Text != "Some MPI 1.2":
			t.Errorf("%s: it is %q", name, l.Text)
		}
	}
}
