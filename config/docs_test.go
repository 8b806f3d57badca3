package config

import (
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"
)

var hclBlock = regexp.MustCompile("(?s)```hcl\n(.*?)```")

// What the documents show can be loaded: files with a site as they are, and
// other pieces as parts of one.
func TestDocumentsLoad(t *testing.T) {
	const rest = `
site "alpha" { client = 0  embedded_server { clients = 2 }  auth "none" {} }
host { address = "127.0.0.1"  procs = 1 }
program { command = ["./prog"] }
`
	opt := testOptions()
	opt.Local = func(netip.Addr) bool { return false }
	for _, name := range []string{"../README.md", "../docs/config.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found := hclBlock.FindAllSubmatch(text, -1)
		if len(found) < 2 {
			t.Errorf("%s has only %d pieces of HCL", name, len(found))
		}
		for _, m := range found {
			piece := string(m[1])
			if !strings.Contains(piece, "site \"") {
				piece += rest
			}
			_, diags := load(&faults{file: name}, []byte(piece), "/", opt)
			for _, d := range diags {
				t.Errorf("%v\n%s", d, d.Source)
			}
		}
	}
}
