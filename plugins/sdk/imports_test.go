package sdk

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// mostPackages is what this package brings into a plugin at most, a few more than now: 326, of
// which Go has 197, gRPC 66 and protobuf 34.
const mostPackages = 330

// A vendor's plugin imports only the contract, the generated protocol and the packages that
// pass links on, directly or indirectly, and nothing else of ours.
func TestImportsReachTheContractOnly(t *testing.T) {
	// As docs/plugin-howto.md builds it.
	out, err := exec.Command("go", "list", "-tags", "grpcnotrace", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	const ours, own = "github.com/openimpi/impi/", "github.com/openimpi/impi/plugins/sdk/"
	allowed := []string{
		"link", "support/failfast", "support/ntcopy", "support/polling", "support/rdma", "support/ring", "support/unproved",
		"transports", "transports/conn", "transports/fabric", "transports/socket",
		"proto", "proto/handover", "proto/pipe",
	}
	// With these the linker keeps every method of every type, since they call methods by their names.
	large := []string{"net/rpc", "text/template", "html/template"}
	all := strings.Fields(string(out))
	if len(all) > mostPackages {
		t.Errorf("the sdk reaches %d packages: %d were enough", len(all), mostPackages)
	}
	for _, name := range all {
		if slices.Contains(large, name) {
			t.Errorf("the sdk reaches %s, by which a plugin becomes a third larger", name)
		}
		if below, is := strings.CutPrefix(name+"/", own); strings.HasPrefix(name, ours) && (!is || below != "" && !slices.Contains(allowed, strings.TrimSuffix(below, "/"))) {
			t.Errorf("the sdk reaches %s", name)
		}
	}
}
