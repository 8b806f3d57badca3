package vendors

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/soak"
)

// howtoPlugin makes a folder with the plugin of docs/plugin-howto.md, and returns the page too.
func howtoPlugin(t *testing.T) (dir, page string) {
	t.Helper()
	text, err := os.ReadFile(root + "/docs/plugin-howto.md")
	if err != nil {
		t.Fatal(err)
	}
	page = string(text)
	for _, b := range blocks(page) {
		if b.file != "main.go" {
			continue
		}
		// Inside of our tree, where it needs no go.mod of its own; ./... leaves testdata out.
		if dir, err = os.MkdirTemp("testdata", "howto-"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(b.text), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir, page
	}
	t.Fatal("the page has no main.go")
	return "", ""
}

// The page says how many packages a plugin is made of, and whose.
func TestPackagesOfAPlugin(t *testing.T) {
	dir, page := howtoPlugin(t)
	cmd := exec.Command(skips.Program(t, "go"), "list", "-deps", "-tags", "grpcnotrace", "-f", "{{if .Standard}}go{{else}}{{.ImportPath}}{{end}}", "./"+dir)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	all, whose := 0, map[string]int{}
	for path := range strings.FieldsSeq(string(out)) {
		for _, prefix := range []string{"go", "google.golang.org/grpc", "google.golang.org/protobuf", "google.golang.org/genproto", "golang.org/x", sdkModule, "github.com/hashicorp/go-hclog", ourModule + "/internal", ""} {
			if path == prefix || strings.HasPrefix(path, prefix+"/") || prefix == "" {
				whose[prefix]++
				break
			}
		}
		all++
	}
	all -= whose[ourModule+"/internal"] // the plugin itself
	want := fmt.Sprintf("%d packages remain: %d of Go, %d of gRPC, %d of protobuf, %d of golang.org/x, %d of impi, hclog with %d that it needs, and one of genproto.",
		all, whose["go"], whose["google.golang.org/grpc"], whose["google.golang.org/protobuf"], whose["golang.org/x"], whose[sdkModule], whose[""])
	if whose["google.golang.org/genproto"] != 1 || !strings.Contains(strings.Join(strings.Fields(page), " "), want) {
		t.Errorf("docs/plugin-howto.md does not say: %s (%d of genproto)", want, whose["google.golang.org/genproto"])
	}
}

var sizeRow = regexp.MustCompile("(?m)^\\| `(go build.*)`.* \\| ([0-9.]+) \\|$")

// The page says how large it is, within 3 %.
func TestSizeOfAPlugin(t *testing.T) {
	soak.SkipUnlessSoak(t, "a plugin is linked in three ways")
	if runtime.GOARCH != "amd64" {
		skips.NotRun(t, "figures for "+runtime.GOARCH, "run it on amd64")
	}
	skips.Program(t, "go")
	dir, page := howtoPlugin(t)
	rows := sizeRow.FindAllStringSubmatch(page, -1)
	if len(rows) != 3 {
		t.Fatalf("%d rows", len(rows))
	}
	for i, row := range rows {
		target := filepath.Join(t.TempDir(), strconv.Itoa(i))
		script := row[1] + " -trimpath -o " + target + " ./" + dir
		if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
		info, err := os.Stat(target)
		if err != nil {
			t.Fatal(err)
		}
		said, err := strconv.ParseFloat(row[2], 64)
		if is := float64(info.Size()) / 1e6; err != nil || math.Abs(is-said) > 0.03*said {
			t.Errorf("%s: %.1f MB, and the page says %v", row[1], is, said)
		}
	}
}
