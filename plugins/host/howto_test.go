package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/transports"
	"github.com/openimpi/impi/transports/transporttest"
)

// The plugin that docs/plugin-howto.md shows is built as it stands there and
// keeps the whole contract.
func TestHowto(t *testing.T) {
	tool := skips.Program(t, "go")
	text, err := os.ReadFile("../../docs/plugin-howto.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(text), "```go\n")
	code, _, _ = strings.Cut(code, "```\n")
	dir := t.TempDir()
	source, path := filepath.Join(dir, "main.go"), filepath.Join(dir, Prefix+"plain")
	if err := os.WriteFile(source, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, "build", "-o", path, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
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
