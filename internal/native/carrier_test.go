//go:build linux

package native

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/openimpi/impi/internal/skips"
)

// TestCarrier: messages that C sends and receives come whole and in their order, whatever the
// library delivers first and however late it ends what it has begun; of its memory nothing is used
// before or behind its time.
func TestCarrier(t *testing.T) {
	skips.Programs(t, "cc")
	program := filepath.Join(t.TempDir(), "carrier")
	if out, err := exec.CommandContext(t.Context(), "cc", "-std=gnu11", "-O1", "-Wall", "-I.", "-o", program, "testdata/carrier.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), program).CombinedOutput(); err != nil || string(out) != "OK\n" {
		t.Errorf("%v\n%s", err, out)
	}
}
