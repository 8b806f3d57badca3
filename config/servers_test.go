package config

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// listed is a job with a list of servers, and what else its job block has.
func listed(servers, more string) string {
	return "job {\n  servers = " + servers + "\n" + more + "\n  auth \"none\" {}\n}\n" + `
site "alpha" {
  client = 0
  host { address = "127.0.0.1" procs = 1 }
}
site "beta" {
  client = 1
  host { address = "127.0.0.2" procs = 1 }
}
program { command = ["/bin/true"] }
`
}

// TestServers: the first address of a list is that of the server, the others stand by.
func TestServers(t *testing.T) {
	job, found := LoadText("job.hcl", []byte(listed(`["10.0.0.1:7800", "[fd00::2]:7801", "spare:7802"]`, "")),
		Options{Addresses: map[string]netip.Addr{"spare": netip.MustParseAddr("10.0.0.3")}})
	if found.HasErrors() || len(job.Sites) != 2 {
		t.Fatal(found)
	}
	for _, s := range job.Sites {
		var all []string
		for _, x := range s.Server.All() {
			all = append(all, x.Address.String())
		}
		if !slices.Equal(all, []string{"10.0.0.1:7800", "[fd00::2]:7801", "10.0.0.3:7802"}) || s.Server.String() != "10.0.0.1:7800, [fd00::2]:7801, spare:7802" || s.Server.Pos.Line != 2 {
			t.Errorf("site %s: %q, %s at %v", s.Name, all, s.Server.String(), s.Server.Pos)
		}
	}
}

// TestServersThatAreWrong: each fault has the line and what to write.
func TestServersThatAreWrong(t *testing.T) {
	for _, c := range []struct{ servers, more, line, problem, remedy string }{
		{`["10.0.0.1:7800"]`, `server = "10.0.0.1:7800"`, "2", "job has server and servers", "keep servers"},
		{`["10.0.0.1:7800"]`, `server_foreign = true`, "2", "a server of another MPI", "write server with one address"},
		{`["10.0.0.1:7800"]`, `embedded_server {}`, "3", "a server elsewhere and an embedded one", "keep server or embedded_server"},
		{`[]`, "", "2", "is not a list of 1 to 8 places", `write it like servers = ["192.0.2.7:7800", "192.0.2.8:7800"]`},
		{`"10.0.0.1:7800"`, "", "2", "is not a list of 1 to 8 places", "write it like servers"},
		{`["10.0.0.1:7800", "10.0.0.2"]`, "", "2", `"10.0.0.2" has no port`, ""},
		{`["10.0.0.1:7800", "10.0.0.2:7801", "10.0.0.1:7800"]`, "", "2", "is in the list already", "remove it"},
		{`["10.0.0.1:1", "10.0.0.1:2", "10.0.0.1:3", "10.0.0.1:4", "10.0.0.1:5", "10.0.0.1:6", "10.0.0.1:7", "10.0.0.1:8", "10.0.0.1:9"]`, "", "2", "has 9 places, and at most 8 may be", "remove some"},
		{`["10.0.0.1:99999"]`, "", "2", "is not a number from 1 to 65535", ""},
	} {
		_, found := LoadText("job.hcl", []byte(listed(c.servers, c.more)), Options{})
		ok := slices.ContainsFunc(found, func(d Diagnostic) bool {
			return strings.Contains(d.Problem, c.problem) && strings.Contains(d.Remedy, c.remedy) && itoa(d.Pos.Line) == c.line
		})
		if !ok || !found.HasErrors() {
			t.Errorf("%s, %s: %v", c.servers, c.more, found)
		}
	}
}

// TestServersBesideAnEmbeddedOne: a site finds the job's own server by itself.
func TestServersBesideAnEmbeddedOne(t *testing.T) {
	text := strings.Replace(listed(`["10.0.0.1:7800"]`, ""), "  servers = [\"10.0.0.1:7800\"]\n", "", 1)
	text = strings.Replace(text, "client = 0\n", "client = 0\n  embedded_server { listen = \"127.0.0.1:7800\" }\n", 1)
	text = strings.Replace(text, "client = 1\n", "client = 1\n  servers = [\"10.0.0.1:7800\"]\n", 1)
	_, found := LoadText("job.hcl", []byte(text), Options{})
	if len(found) != 1 || !strings.Contains(found[0].Problem, "the embedded one of line") || found[0].Pos.Line != 13 {
		t.Errorf("%v", found)
	}
}
