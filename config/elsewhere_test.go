package config

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// Listeners of a site that is run here need addresses of this machine, whatever the port.
func TestAddressesOfOtherMachines(t *testing.T) {
	opt := testOptions()
	opt.Local = netip.Addr.IsLoopback
	for name, c := range map[string]struct{ server, more, want string }{
		"all here":         {"127.0.0.2:7800", "", ""},
		"a host elsewhere": {"127.0.0.2:7800", "  host {\n address = \"192.0.2.9\"\n procs = 1\n port = 10\n }\n", `are on several machines, and the others cannot reach 127.0.0.2`},
		"a server":         {"192.0.2.9:7800", "", "runs the server on this machine, which has not the address 192.0.2.9"},
		"on any port":      {"192.0.2.9:0", "", "runs the server on this machine, which has not the address 192.0.2.9"},
	} {
		text := "job {\n  embedded_server { listen = \"" + c.server + "\" }\n  auth \"none\" {}\n}\nprogram { command = [\"/bin/true\"] }\n" +
			"site \"alpha\" {\n  client = 0\n  host {\n address = \"127.0.0.2\"\n procs = 1\n }\n" + c.more + "}\n"
		_, found := load(&faults{file: "job.hcl"}, []byte(text), t.TempDir(), opt)
		found = slices.DeleteFunc(found, func(d Diagnostic) bool { return d.Severity == Warning }) // of auth "none" there
		if c.want == "" && len(found) == 0 {
			continue
		}
		if len(found) != 1 || !strings.Contains(found[0].Problem, c.want) || !strings.Contains(found[0].Remedy, "address that") {
			t.Errorf("%s: %v", name, found.Err())
		}
	}
}
