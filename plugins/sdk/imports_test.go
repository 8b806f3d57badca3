package sdk

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/skips"
)

// A vendor's plugin imports only the contract, the generated protocol and the packages that
// pass links on, directly or indirectly, and nothing else of ours.
func TestImportsReachTheContractOnly(t *testing.T) {
	tool := skips.Program(t, "go")
	out, err := exec.Command(tool, "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	const ours = "github.com/openimpi/impi/"
	allowed := []string{
		"core/link", "core/ntcopy", "transports", "transports/conn", "transports/support/ring", "transports/socket",
		"plugins/proto", "plugins/proto/handover", "plugins/proto/pipe", "plugins/sdk",
	}
	for _, name := range strings.Fields(string(out)) {
		if name, ok := strings.CutPrefix(name, ours); ok && !slices.Contains(allowed, name) {
			t.Errorf("the sdk reaches %s", name)
		}
	}
}
