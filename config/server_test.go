package config

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

const (
	oneProgram = `program { command = ["./bin/prog"] }` + "\n"
	hostA      = ` host { address = "127.0.0.2"  procs = 1 } `
	hostB      = ` host { address = "127.0.0.3"  procs = 1 } `
)

func TestWhereTheServerIs(t *testing.T) {
	const none = "\n" + `auth "none" {}` + "\n"
	for _, c := range []struct {
		name, text string
		home       string // site that embeds the server
		complete   bool
		clients    int
	}{
		{
			name:     "the job's server lives in the lowest client of ours",
			text:     `job { embedded_server {} ` + none + `} site "b" { client = 2 ` + hostB + `} site "a" { client = 1 ` + hostA + `} site "lam" { client = 0 foreign = true }`,
			home:     "a",
			complete: true, clients: 3,
		},
		{
			name:     "a site's server lives there, and others find it",
			text:     `site "a" { client = 0 ` + none + hostA + `} site "b" { client = 1 ` + none + hostB + ` embedded_server { listen = "127.0.0.3:7800" } }`,
			home:     "b",
			complete: true, clients: 2,
		},
		{
			name:    "one site that waits for another one",
			text:    `site "a" { client = 0 ` + none + hostA + ` embedded_server { clients = 2 } }`,
			home:    "a",
			clients: 2,
		},
		{
			name:     "one site alone",
			text:     `site "a" { client = 0 ` + hostA + ` embedded_server {} }`,
			home:     "a",
			complete: true, clients: 1,
		},
		{
			name: "a server elsewhere, one site of ours and a foreign one",
			text: `job { server = "192.0.2.1:7800" ` + none + ` } site "a" { client = 2 ` + hostA + `} site "lam" { client = 5 foreign = true }`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			j, diags := loadText(t, strings.ReplaceAll(oneProgram+c.text, "} site", "}\nsite"))
			if len(diags) > 0 {
				t.Fatal(diags)
			}
			home := serverSite(j)
			if home.Name != c.home || j.Complete != c.complete || home.Server.Clients != c.clients {
				t.Errorf("in %q, complete %t, clients %d", home.Name, j.Complete, home.Server.Clients)
			}
			for _, s := range j.Sites {
				if !s.Foreign && s.Name != home.Name && c.home != "" && s.Server.Address != home.Server.Address {
					t.Errorf("%s dials %v", s.Name, s.Server.Address)
				}
			}
		})
	}
}

// serverSite is the site whose node runs the job's server.
func serverSite(j *Job) (home Site) {
	if i := slices.IndexFunc(j.Sites, func(s Site) bool { return s.Server.Embedded }); i >= 0 {
		home = j.Sites[i]
	}
	return home
}

// Without auth a key is drawn only if nobody outside the file can take part.
func TestWhenAKeyIsDrawn(t *testing.T) {
	for text, random := range map[string]bool{
		`site "a" { client = 0  embedded_server {} ` + hostA + `}`:                                                                   true,
		`site "a" { client = 0  embedded_server { clients = 2 } ` + hostA + `}`:                                                      false,
		`site "a" { client = 0  server = "127.0.0.1:7800" ` + hostA + `}`:                                                            false,
		`site "a" { client = 0  embedded_server {}  host { address = "192.0.2.1"  procs = 1 } }`:                                     false,
		`site "a" { client = 0  embedded_server { listen = "192.0.2.1:0" } ` + hostA + `}`:                                           false,
		`site "a" { client = 0  embedded_server {} ` + hostA + `}` + "\n" + `site "lam" { client = 1  foreign = true }`:              false,
		`site "a" { client = 0  embedded_server {} ` + hostA + `}` + "\n" + `site "b" { client = 1  auth "none" {} ` + hostB + `}`:   false,
		`job { embedded_server {} }` + "\n" + `site "a" { client = 0 ` + hostA + `}` + "\n" + `site "b" { client = 1 ` + hostB + `}`: true,
	} {
		j, diags := loadText(t, oneProgram+text)
		switch {
		case random && len(diags) > 0:
			t.Errorf("%s\n%v", text, diags)
		case random && !j.Sites[0].Auth.Random:
			t.Errorf("%s\nno key is drawn", text)
		case !random && (len(diags) != 1 || !strings.Contains(diags[0].Problem, "has no auth")):
			t.Errorf("%s\n%v", text, diags)
		}
	}
}

// TestPorts: what others must know beforehand has the first ports of the range, in the order of the
// sites, and what listens at any port has those that are left.
func TestPorts(t *testing.T) {
	const begin = `ports = "7800-7899"
job {
  embedded_server { listen = "10.0.0.1:0" }
  auth "key" { env = "K" }
}
` + oneProgram + `
site "a" {
  client = 0
  hosts  = "10.0.0.[1-2]"
  procs  = 1
}
site "b" {
  client = 1
  ports  = "8000-8009"
  hosts  = "10.0.1.[1-2]"
  procs  = 1
}
site "c" {
  client = 2
  host {
    address = "10.0.2.1"
    procs   = 1
  }
}
site "d" {
  client = 3
  hosts  = "10.0.3.[1-2]"
  procs  = 1
  head   = "10.0.3.1:9000"
}
site "e" {
  client = 4
  hosts  = "10.0.4.[1-2]"
  procs  = 1
}
`
	load := func(text string) *Job {
		t.Helper()
		j, diags := LoadText("job.hcl", []byte(text), Options{Builtins: two, Environ: []string{"K=7"}, Local: func(netip.Addr) bool { return false }})
		if len(diags) > 0 {
			t.Fatal(diags)
		}
		return j
	}
	j := load(begin)
	want := map[string][2]string{
		"a": {"10.0.0.1:7801", "7803-7899"}, "b": {"10.0.1.1:8000", "8001-8009"}, "c": {"10.0.2.1:7802", "7803-7899"},
		"d": {"10.0.3.1:9000", "7803-7899"}, "e": {"10.0.4.1:7802", "7803-7899"},
	}
	for _, s := range j.Sites {
		if got := [2]string{s.HeadAddress().String(), s.Ports.String()}; s.Server.Address.String() != "10.0.0.1:7800" || s.Name != "c" && got != want[s.Name] || got[1] != want[s.Name][1] {
			t.Errorf("site %s: server at %v, head and others at %q", s.Name, s.Server.Address, got)
		}
	}
	// A launcher that tells all sites the port chooses it when it starts.
	j = load(strings.Replace(begin, `listen = "10.0.0.1:0"`, "", 1))
	if s := j.Sites[0]; s.Server.Address.String() != "127.0.0.1:0" || s.HeadAddress().Port() != 7800 || s.Ports.String() != "7802-7899" {
		t.Errorf("server at %v, head at %v, others at %v", s.Server.Address, s.HeadAddress(), s.Ports)
	}
	j = load(strings.Replace(begin, `ports = "7800-7899"`, "", 1))
	if s := j.Sites[0]; s.HeadAddress().Port() != HeadPort || !s.Ports.IsZero() || s.Server.Address.Port() != 0 {
		t.Errorf("without ports: head at %v, others at %v, server at %v", s.HeadAddress(), s.Ports, s.Server.Address)
	}
}

// TestRangesOfTransports: a range of a transport that listens by TCP has no port at which something
// else of the file listens on the same hosts.
func TestRangesOfTransports(t *testing.T) {
	for name, c := range map[string]struct{ job, more, hosts, says string }{
		"apart":                   {"embedded_server { listen = \"10.0.0.1:7800\" }", "", "10.0.0.[1-2]", ""},
		"the server":              {"embedded_server { listen = \"10.0.0.1:7950\" }", "", "10.0.0.[1-2]", "port 7950 of the embedded server (line 2)"},
		"a server":                {"server = \"10.0.0.2:7950\"", "", "10.0.0.[1-2]", "port 7950 of the job's server (line 2)"},
		"a server elsewhere":      {"server = \"10.0.9.9:7950\"", "", "10.0.0.[1-2]", ""},
		"a standby server":        {"servers = [\"10.0.9.9:7950\", \"10.0.0.1:7951\"]", "", "10.0.0.[1-2]", "port 7951 of the job's server (line 2)"},
		"metrics":                 {"server = \"10.0.9.9:7800\"", "metrics { listen = \"0.0.0.0:7999\" }\n", "10.0.0.[1-2]", "port 7999 of metrics (line 5)"},
		"ui":                      {"server = \"10.0.9.9:7800\"", "ui { listen = \"127.0.0.1:7900\" }\n", "10.0.0.[1-2]", "port 7900 of ui (line 5)"},
		"the name server":         {"server = \"10.0.9.9:7800\"", "names {\n  server = \"10.0.0.2:7910\"\n  auth \"none\" {}\n}\n", "10.0.0.[1-2]", "port 7910 of the name server (line 5)"},
		"a name server elsewhere": {"server = \"10.0.9.9:7800\"", "names {\n  server = \"10.0.9.2:7910\"\n  auth \"none\" {}\n}\n", "10.0.0.[1-2]", ""},
		"the usual head":          {"server = \"10.0.9.9:7800\"", "", "10.0.0.[1-2]", "HEAD"},
		"no head":                 {"server = \"10.0.9.9:7800\"", "", "10.0.0.1", "NONE"},
		"the head of ports":       {"server = \"10.0.9.9:7800\"", "ports = \"7940-8100\"\n", "10.0.0.[1-2]", "port 7940 of the head of site \"a\" (line 5)"},
		"what ports are left":     {"server = \"10.0.9.9:7800\"", "ports = \"7899-8100\"\n", "10.0.0.[1-2]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := "7900-7999"
			if c.says == "HEAD" || c.says == "NONE" {
				in = "7800-7810"
			}
			text := "job {\n  " + c.job + "\n  auth \"key\" { env = \"K\" }\n}\n" + c.more + "transport \"tcp\" {\n  config { port_range = \"" + in + "\" }\n}\n" +
				"site \"a\" {\n  client = 0\n  hosts = \"" + c.hosts + "\"\n  procs = 1\n}\n" + oneProgram
			_, diags := LoadText("job.hcl", []byte(text), Options{Builtins: two, Environ: []string{"K=7"}, Local: func(netip.Addr) bool { return false }})
			switch says := strings.NewReplacer("HEAD", "port 7802 of the head of site \"a\"", "NONE", "").Replace(c.says); {
			case says == "" && len(diags) > 0, says != "" && (len(diags) != 1 || !strings.Contains(diags[0].Problem, says) || diags[0].Remedy == "" || diags[0].Pos.Line < 5):
				t.Errorf("%v instead of %q, of\n%s", diags, says, text)
			}
		})
	}
}

// TestPortsOfServers: the servers that are started by themselves on hosts of the job are outside of
// ports, too.
func TestPortsOfServers(t *testing.T) {
	for job, says := range map[string]string{
		"job {\n  server = \"10.0.0.2:7850\"\n  auth \"key\" { env = \"K\" }\n}\n":                                                               "the job's server has port 7850 of ports",
		"job {\n  server = \"10.0.9.2:7850\"\n  auth \"key\" { env = \"K\" }\n}\n":                                                               "",
		"job {\n  server = \"10.0.9.2:7850\"\n  auth \"key\" { env = \"K\" }\n}\nnames {\n  server = \"10.0.0.1:7860\"\n  auth \"none\" {}\n}\n": "the name server has port 7860 of ports",
	} {
		_, diags := LoadText("job.hcl", []byte(job+"ports = \"7840-7900\"\nsite \"a\" {\n  client = 0\n  hosts = \"10.0.0.[1-2]\"\n  procs = 1\n}\n"+oneProgram),
			Options{Builtins: two, Environ: []string{"K=7"}, Local: func(netip.Addr) bool { return false }})
		if says == "" && len(diags) > 0 || says != "" && (len(diags) != 1 || !strings.Contains(diags[0].Problem, says)) {
			t.Errorf("%v instead of %q, of\n%s", diags, says, job)
		}
	}
}
