// Package manifesttest reads manifests in tests as the schedulers do that take them.
package manifesttest

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/openimpi/impi/internal/launch/daemons"
	"github.com/openimpi/impi/internal/skips"
)

// Checker builds the command of internal/launch/manifest/check. folder is the path of its package
// relative to the test.
func Checker(tb daemons.TB, folder string) (path string) {
	tb.Helper()
	skips.Short(tb)
	path = filepath.Join(tb.TempDir(), "check")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-modfile=check.mod", "-tags=manifests", "-o", path, ".")
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		if strings.Contains(string(out), "dial tcp") {
			skips.NotRun(tb, "the types of Kubernetes and Nomad cannot be downloaded: "+string(out), "run the test where Go's module proxy is reached, once")
		}
		tb.Fatalf("%v: %s", err, out)
	}
	return path
}

// Objects returns the objects of a manifest of a kind, "kubernetes" or "nomad", as parsed into the
// scheduler's own types. With strict, fields that T does not have must not be set.
func Objects[T any](tb daemons.TB, checker, kind string, text []byte, strict bool) (objects []T) {
	tb.Helper()
	cmd := exec.Command(checker, kind)
	cmd.Stdin = bytes.NewReader(text)
	var errs strings.Builder
	cmd.Stderr = &errs
	b, err := cmd.Output()
	if err != nil {
		tb.Fatalf("%v: %s\n%s", err, errs.String(), text)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(&objects); err != nil {
		tb.Fatalf("%v\n%s", err, b)
	}
	return objects
}
