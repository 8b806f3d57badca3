package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// howto builds the plugin that docs/plugin-howto.md shows, with other options of the SDK if they
// are not empty.
func howto(t *testing.T, options string) string {
	t.Helper()
	tool := skips.Program(t, "go")
	text, err := os.ReadFile("../../docs/plugin-howto.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(text), "```go\n")
	code, _, _ = strings.Cut(code, "```\n")
	served := "sdk.Options{Transport: &transport{}"
	if strings.Count(code, served+"}") != 1 {
		t.Fatalf("the page does not serve %s}", served)
	}
	code = strings.Replace(code, served, served+options, 1)
	dir := t.TempDir()
	source, path := filepath.Join(dir, "main.go"), filepath.Join(dir, Prefix+"plain")
	if err := os.WriteFile(source, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, "build", "-o", path, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// The plugin that docs/plugin-howto.md shows is built as it stands there and
// keeps the whole contract.
func TestHowto(t *testing.T) {
	path := howto(t, "")
	w := builtin("plain", "")
	w.Builtin, w.Path, w.NoMTLS = false, path, false
	w.Settings = map[string]any{"timeout": 5}
	p := w.start(t)
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		return transporttest.Harness{
			Transport: p.Transport(), Large: suiteLarge(), Links: suiteLinks(),
			Listen: transports.ListenSpec{Host: "127.0.0.1", Dir: privateDir(t), Name: "suite"},
		}
	})
}

// Binaries that speak the version before, and the one after as well, make links in any pair with
// one of today, each as another process of another file.
func TestBinariesOfOtherAges(t *testing.T) {
	plugins := map[string]*Plugin{}
	for name, c := range map[string]struct {
		options string
		spoken  int
	}{"older": {", Protocols: []int{1}", 1}, "today": {"", 2}, "newer": {", Protocols: []int{2, 3}", 2}} {
		w := builtin("plain", "")
		w.Builtin, w.Path, w.NoMTLS = false, howto(t, c.options), false
		p := w.start(t)
		if s := p.Status(); s.Protocol != c.spoken || s.State != StateHealthy {
			t.Errorf("%s: %+v", name, s)
		}
		plugins[name] = p
	}
	for _, from := range plugins {
		for _, to := range plugins {
			ln := listen(t, to)
			a, b := pair(t, from, ln)
			exchange(t, a, b)
		}
	}
}
