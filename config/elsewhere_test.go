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
		"all here":           {"127.0.0.2:7800", "", ""},
		"a host elsewhere":   {"127.0.0.2:7800", "  host {\n address = \"192.0.2.9\"\n procs = 1\n port = 10\n }\n", `are on several machines, and the others cannot reach 127.0.0.2`},
		"a server":           {"192.0.2.9:7800", "", "runs the server on this machine, which does not have the address 192.0.2.9"},
		"metrics":            {"127.0.0.2:7800", "  metrics { listen = \"203.0.113.9:9464\" }\n", `what serves metrics of site "alpha" listens on this machine, which does not have the address 203.0.113.9`},
		"metrics, any port":  {"127.0.0.2:7800", "  metrics { listen = \"203.0.113.9:0\" }\n", "which does not have the address 203.0.113.9"},
		"metrics everywhere": {"127.0.0.2:7800", "  metrics { listen = \"0.0.0.0:9464\" }\n", ""},
		"metrics here":       {"127.0.0.2:7800", "  metrics { listen = \"127.0.0.3:9464\" }\n", ""},
		"on any port":        {"192.0.2.9:0", "", "runs the server on this machine, which does not have the address 192.0.2.9"},
	} {
		text := "job {\n  embedded_server { listen = \"" + c.server + "\" }\n  auth \"none\" {}\n}\nprogram { command = [\"/bin/true\"] }\n" +
			"site \"alpha\" {\n  client = 0\n  host {\n address = \"127.0.0.2\"\n procs = 1\n }\n" + c.more + "}\n"
		_, found := load(&faults{file: "job.hcl"}, []byte(text), t.TempDir(), opt)
		found = slices.DeleteFunc(found, func(d Diagnostic) bool { return d.Severity == Warning }) // of auth "none" there
		if c.want == "" && len(found) == 0 {
			continue
		}
		if c.want == "" || len(found) != 1 || !strings.Contains(found[0].Problem, c.want) || !strings.Contains(found[0].Remedy, "address that") {
			t.Errorf("%s: %v", name, found.Err())
		}
	}
}

// TestServerAtAnotherHost: the head of a site runs its embedded server, which is checked on any
// machine, with the line of the block.
func TestServerAtAnotherHost(t *testing.T) {
	for name, c := range map[string]struct {
		server, local string
		severity      Severity
		want          string
	}{
		"the head":                    {"10.77.0.1", "10.77.0.9", Warning, ""},
		"the head, seen there":        {"10.77.0.1", "10.77.0.1", Warning, ""},
		"another host":                {"10.77.0.2", "10.77.0.9", Error, `10.77.0.2:7800, the address of a host of site "alpha", but it runs on 10.77.0.1`},
		"another site":                {"10.77.0.5", "10.77.0.9", Error, `10.77.0.5:7800, the address of a host of site "beta", but it runs on 10.77.0.1`},
		"another host, seen there":    {"10.77.0.2", "10.77.0.2", Error, `10.77.0.2:7800, the address of a host of site "alpha", but it runs on 10.77.0.1`},
		"another host, from the head": {"10.77.0.2", "10.77.0.1", Error, "runs the server on this machine, which does not have the address 10.77.0.2"},
		"a name":                      {"", "10.77.0.9", Warning, ""},
		"who knows":                   {"10.99.0.1", "10.77.0.9", Warning, "10.99.0.1:7800, but it runs on 10.77.0.1"},
	} {
		opt := testOptions()
		opt.CheckPort = nil
		opt.Local = func(a netip.Addr) bool { return a == netip.MustParseAddr(c.local) }
		if c.server == "" { // names that nobody has looked up are no addresses, and not alike
			opt.Local = nil
			c.server = "head.alpha"
		}
		text := "job {\n  embedded_server { listen = \"" + c.server + ":7800\" }\n  auth \"key\" { key = 7 }\n}\nprogram { command = [\"/bin/true\"] }\n" +
			"site \"alpha\" {\n  client = 0\n  hosts = \"10.77.0.[1-3]\"\n  procs = 1\n}\nsite \"beta\" {\n  client = 1\n  hosts = \"10.77.0.[4-6],node7\"\n  procs = 1\n}\n"
		_, found := load(&faults{file: "job.hcl"}, []byte(text), t.TempDir(), opt)
		found = slices.DeleteFunc(found, func(d Diagnostic) bool { return !strings.Contains(d.Problem, "server") })
		if c.want == "" && len(found) == 0 {
			continue
		}
		if len(found) != 1 || found[0].Severity != c.severity || !strings.Contains(found[0].Problem, c.want) || found[0].Pos.Line != 2 {
			t.Errorf("%s: %v", name, found)
		}
	}
}
