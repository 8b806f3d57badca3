package firewall

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
)

// builtins are like those of impi-node.
var builtins = []config.Builtin{
	{Name: "shm", Machine: true, Memory: true}, {Name: "unix", Machine: true},
	{Name: "tcp", EncryptsBy: "tls", Channels: true}, {Name: "quic", NeedsBlock: true, Encrypts: true, Datagrams: true},
}

// run runs the command on a job file.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out, errs bytes.Buffer
	c := Command(func(path string) *config.Job {
		job, found := config.Load(path, config.Options{Builtins: builtins, Local: func(netip.Addr) bool { return false }})
		if job == nil {
			t.Log(found)
		}
		return job
	})
	if status := c.Execute(args, &out, &errs); status != 0 {
		return out.String(), fmt.Errorf("status %d: %s", status, &errs)
	}
	return out.String(), nil
}

func TestText(t *testing.T) {
	got, err := run(t, "testdata/job.hcl")
	if err != nil {
		t.Fatal(err)
	}
	want := `site alpha, host 10.0.0.1
  tcp 7800       the job's server      from 10.0.0.2, 2001:db8::5, 10.9.0.1, hosts of lam
  tcp 7802       the head of the site  from 10.0.0.2
  tcp 7900-7999  channels              from 10.0.0.2, 2001:db8::5, 10.9.0.1, hosts of lam
  tcp 7900-7999  direct links by tcp   from 10.0.0.2, 2001:db8::5
  udp any        direct links by quic  from 10.0.0.2, 2001:db8::5, 10.9.0.1
  tcp any        spawned worlds        from 10.0.0.2, 2001:db8::5, 10.9.0.1
  tcp 9464       metrics               from Prometheus
site alpha, host 10.0.0.2
  tcp 7900-7999  channels              from 10.0.0.1, 2001:db8::5, 10.9.0.1, hosts of lam
  tcp 7900-7999  direct links by tcp   from 10.0.0.1, 2001:db8::5
  udp any        direct links by quic  from 10.0.0.1, 2001:db8::5, 10.9.0.1
  tcp any        spawned worlds        from 10.0.0.1, 2001:db8::5, 10.9.0.1
  tcp 9464       metrics               from Prometheus
site beta, host 2001:db8::5
  tcp 7801       channels                    from 10.0.0.1, 10.0.0.2, 10.9.0.1, hosts of lam
  tcp 7900-7999  direct links by tcp         from 10.0.0.1, 10.0.0.2
  udp any        direct links by quic        from 10.0.0.1, 10.0.0.2, 10.9.0.1
  tcp any        spawned worlds              from 10.0.0.1, 10.0.0.2, 10.9.0.1
  tcp 7900-7999  channels of spawned worlds  from 10.0.0.1, 10.0.0.2, 10.9.0.1
  tcp 9464       metrics                     from Prometheus
site gamma, host 10.9.0.1
  tcp any  channels          from 10.0.0.1, 10.0.0.2, 2001:db8::5, hosts of lam
  udp any  channels by quic  from 10.0.0.1, 10.0.0.2, 2001:db8::5
  tcp any  spawned worlds    from 10.0.0.1, 10.0.0.2, 2001:db8::5
direct links by quic: write ports = "7800-7899" at the top of the file, for all that listens
spawned worlds: write ports = "7800-7899" at the top of the file, for all that listens; or forbid them at all sites: spawn { slots = 0 }
channels: write ports = "7800-7899" at the top of the file, for all that listens
channels by quic: write ports = "7800-7899" at the top of the file, for all that listens
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestNFT(t *testing.T) {
	got, err := run(t, "-nft", "testdata/job.hcl")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# site alpha, host 10.0.0.1\n",
		"add rule inet filter input ip saddr { 10.0.0.2, 10.9.0.1 } tcp dport 7800 accept comment \"the job's server\"\n",
		"add rule inet filter input ip6 saddr { 2001:db8::5 } tcp dport 7800 accept comment \"the job's server\"\n",
		"# add rule inet filter input ip saddr { addresses of hosts of lam } tcp dport 7800 accept comment \"the job's server\"\n",
		"# direct links by quic: udp any from 10.0.0.2, 2001:db8::5, 10.9.0.1: write ports = ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
	for line := range strings.Lines(got) {
		if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "add rule inet filter input ip") {
			t.Errorf("nft would not understand %q", line)
		}
	}
}

func TestJSON(t *testing.T) {
	got, err := run(t, "testdata/job.hcl", "-json")
	if err != nil {
		t.Fatal(err)
	}
	var rules []Rule
	if err := json.Unmarshal([]byte(got), &rules); err != nil || len(rules) != 21 {
		t.Fatalf("%d rules, %v", len(rules), err)
	}
	if r := rules[0]; r.Site != "alpha" || r.Host != "10.0.0.1" || r.Proto != "tcp" || r.Ports != "7800" || len(r.From) != 4 || r.For == "" || r.Remedy != "" {
		t.Errorf("%+v", r)
	}
}

func TestFew(t *testing.T) {
	names := strings.Split("abcdefghij", "")
	if a, b := few(names[:8]), few(names); a != "a, b, c, d, e, f, g, h" || b != "a, b, c, d, e, f, g, and 3 more (-json has all)" {
		t.Errorf("%q, %q", a, b)
	}
}

func TestUsage(t *testing.T) {
	for line, want := range map[string]string{
		"": "give one job file", "a b": "give one job file", "-x a": "flag provided but not defined", "-json -nft a": "exclude each other",
		"/nowhere/job.hcl": "status 2",
	} {
		if got, err := run(t, strings.Fields(line)...); err == nil || !strings.Contains(err.Error(), want) || got != "" {
			t.Errorf("%q: %v, printed %q", line, err, got)
		}
	}
}

// TestRulesOfStandbyServers: each address of the list is to be open to all sites.
func TestRulesOfStandbyServers(t *testing.T) {
	job := &config.Job{}
	for i, name := range []string{"alpha", "beta"} {
		job.Sites = append(job.Sites, config.Site{
			Name: name, Client: i, Hosts: []config.Host{{Address: netip.AddrFrom4([4]byte{10, 0, 1, byte(i)}), Procs: 1}},
			Server: config.Server{
				Address: netip.MustParseAddrPort("10.0.0.1:7800"),
				Standby: []config.ServerAddress{{Address: netip.MustParseAddrPort("10.0.0.2:7801"), Name: "spare"}},
			},
		})
	}
	var found []string
	for _, r := range Rules(job) {
		if r.For == "the job's server" {
			found = append(found, fmt.Sprint(r.Host, " ", r.Ports, " ", len(r.From)))
		}
	}
	if !slices.Equal(found, []string{"10.0.0.1 7800 2", "spare 7801 2"}) {
		t.Errorf("%q", found)
	}
}

// TestRulesOfARange: with ports in the file no port is left to the system, and what other machines
// have to know beforehand has a port of its own.
func TestRulesOfARange(t *testing.T) {
	got, err := run(t, "testdata/range.hcl")
	if err != nil {
		t.Fatal(err)
	}
	want := `site alpha, host 10.0.0.1
  tcp 7800       the job's server      from 10.0.0.2, 10.9.0.1, 10.9.0.2
  tcp 7801       the head of the site  from 10.0.0.2
  tcp 7803-7899  channels              from 10.0.0.2, 10.9.0.1, 10.9.0.2
  udp 7803-7899  direct links by quic  from 10.0.0.2, 10.9.0.1, 10.9.0.2
  tcp 7803-7899  spawned worlds        from 10.0.0.2, 10.9.0.1, 10.9.0.2
  tcp 7803-7899  metrics               from Prometheus
site alpha, host 10.0.0.2
  tcp 7803-7899  channels              from 10.0.0.1, 10.9.0.1, 10.9.0.2
  udp 7803-7899  direct links by quic  from 10.0.0.1, 10.9.0.1, 10.9.0.2
  tcp 7803-7899  spawned worlds        from 10.0.0.1, 10.9.0.1, 10.9.0.2
  tcp 7803-7899  metrics               from Prometheus
site beta, host 10.9.0.1
  tcp 7803-7899  the head of the site  from 10.9.0.2
  tcp 7803-7899  channels              from 10.0.0.1, 10.0.0.2, 10.9.0.2
  udp 9000-9009  direct links by quic  from 10.0.0.1, 10.0.0.2, 10.9.0.2
  tcp 7803-7899  spawned worlds        from 10.0.0.1, 10.0.0.2, 10.9.0.2
  tcp 7803-7899  metrics               from Prometheus
site beta, host 10.9.0.2
  tcp 7803-7899  channels                           from 10.0.0.1, 10.0.0.2, 10.9.0.1
  udp 9000-9009  direct links by quic               from 10.0.0.1, 10.0.0.2, 10.9.0.1
  tcp 7803-7899  spawned worlds                     from 10.0.0.1, 10.0.0.2, 10.9.0.1
  tcp 22         ssh, by which its node is started  from 10.9.0.1
  tcp 7803-7899  metrics                            from Prometheus
ssh, by which its node is started: it is port 22, unless the configuration of ssh on the hosts that start it says otherwise
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestRulesOfATree: in a site of very many hosts some connect others with the head.
func TestRulesOfATree(t *testing.T) {
	s := config.Site{Name: "alpha"}
	for i := range 40 {
		s.Hosts = append(s.Hosts, config.Host{Address: netip.AddrFrom4([4]byte{10, 0, 1, byte(i)}), Procs: 1})
	}
	for _, want := range []string{"tcp any from 10.0.1.33, 10.0.1.34, 10.0.1.35, 10.0.1.36, 10.0.1.37, 10.0.1.38, 10.0.1.39: hosts that it connects with the head (" + useRange + ")", "tcp 7800-7899 from 10.0.1.33, 10.0.1.34, 10.0.1.35, 10.0.1.36, 10.0.1.37, 10.0.1.38, 10.0.1.39: hosts that it connects with the head"} {
		var found []string
		for _, r := range Rules(&config.Job{Sites: []config.Site{s}}) {
			if strings.HasPrefix(r.For, "hosts that") {
				found = append(found, r.Host+" "+r.String())
			}
		}
		if !slices.Equal(found, []string{"10.0.1.1 " + want}) {
			t.Errorf("%q", found)
		}
		s.Ports = config.Ports{First: 7800, Last: 7899}
	}
}

// TestRulesOfChannels: where routes have direct = false the channels are made by what they prefer
// to IMPI's way, which may need other ports; where plain TCP is forbidden that is whatever
// encrypts.
func TestRulesOfChannels(t *testing.T) {
	b, err := os.ReadFile("testdata/range.hcl")
	if err != nil {
		t.Fatal(err)
	}
	const cert = "\n  config {\n    cert = \"a.crt\"\n    key  = \"a.key\"\n    ca   = \"ca.crt\"\n    tls  = true\n  }\n}\n"
	for name, c := range map[string]struct {
		route, more string
		by          []string // all rules for channels by a transport, each of four hosts
	}{
		"quic alone":              {route: `prefer = ["quic"]`, by: []string{"quic"}},
		"plain TCP is forbidden":  {route: `prefer = ["tcp", "quic"]`, by: []string{"quic"}},
		"TLS is demanded":         {route: "prefer = [\"tcp\", \"quic\"]\n  require_tls = true", by: []string{"quic"}},
		"plain TCP is preferred":  {route: "prefer = [\"tcp\", \"quic\"]\n  require_tls = false"},
		"quic before plain TCP":   {route: "prefer = [\"quic\", \"tcp\"]\n  require_tls = false", by: []string{"quic"}},
		"TCP encrypts and UDP":    {`prefer = ["tcp", "quic"]`, "transport \"tcp\" {" + cert, []string{"tcp", "quic"}},
		"a plugin is asked first": {"prefer = [\"fast\", \"tcp\"]", "transport \"fast\" {\n  plugin = \"/bin/true\"\n}\n", []string{"fast"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "job.hcl")
			text := strings.Replace(string(b), `{ prefer = ["quic"] }`, "{\n  "+c.route+"\n  direct = false\n}", 1) + c.more
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := run(t, path)
			if err != nil {
				t.Fatal(err)
			}
			for _, transport := range []string{"tcp", "quic", "fast"} {
				want := 0
				if slices.Contains(c.by, transport) {
					want = 4
				}
				if n := strings.Count(got, "channels by "+transport+"  "); n != want || strings.Contains(got, "direct links") {
					t.Errorf("%d hosts have a port for channels by %s, of %d:\n%s", n, transport, want, got)
				}
			}
		})
	}
}

// TestRulesOfOthers: a server of names that jobs share, ssh, which starts nodes, and a site's own
// MPI have rules, too.
func TestRulesOfOthers(t *testing.T) {
	site := func(name string, hosts int, net byte) config.Site {
		s := config.Site{Name: name}
		for i := range hosts {
			s.Hosts = append(s.Hosts, config.Host{Address: netip.AddrFrom4([4]byte{10, 0, net, byte(i)}), Procs: 1})
		}
		return s
	}
	alpha, beta, gamma := site("alpha", 3, 1), site("beta", 2, 2), site("gamma", 1, 3)
	alpha.Launch, alpha.Native = &config.Launch{Engine: config.LaunchSSH, Fanout: 1}, &config.Native{}
	beta.Launch = &config.Launch{Engine: config.LaunchSSH, Fanout: 16, Options: []string{"-v", "-o", "Port=2222"}}
	for _, s := range []*config.Site{&alpha, &beta} {
		s.Names.Server = netip.MustParseAddrPort("10.0.9.9:7900")
	}
	gamma.Names.ServerName, gamma.Names.Server = "names.example", netip.MustParseAddrPort("0.0.0.0:7901")
	var found []string
	for _, r := range Rules(&config.Job{Sites: []config.Site{alpha, beta, gamma}}) {
		if strings.HasPrefix(r.For, "the name") || strings.HasPrefix(r.For, "ssh") || strings.HasPrefix(r.For, "the site's own") {
			found = append(found, r.Host+" "+r.String())
		}
	}
	want := []string{
		"10.0.1.0 tcp any from 10.0.1.1, 10.0.1.2: the site's own MPI (" + boundNative + ")",
		"10.0.1.1 tcp any from 10.0.1.0, 10.0.1.2: the site's own MPI (" + boundNative + ")",
		"10.0.1.1 tcp 22 from 10.0.1.0: ssh, by which its node is started (" + sshRemedy + ")",
		"10.0.1.2 tcp any from 10.0.1.0, 10.0.1.1: the site's own MPI (" + boundNative + ")",
		"10.0.1.2 tcp 22 from 10.0.1.0, 10.0.1.1: ssh, by which its node is started (" + sshRemedy + ")",
		"10.0.2.1 tcp 2222 from 10.0.2.0: ssh, by which its node is started",
		"10.0.9.9 tcp 7900 from 10.0.1.0, 10.0.1.1, 10.0.1.2, 10.0.2.0, 10.0.2.1: the name server",
		"names.example tcp 7901 from 10.0.3.0: the name server",
	}
	if !slices.Equal(found, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(found, "\n"), strings.Join(want, "\n"))
	}
	for options, want := range map[string]string{"-p 2022": "2022", "-p2023": "2023", "-oport=2024": "2024", "-o Port=1 -p 2": "1", "-p x": "", "-o User=me": "", "-p 70000": "", "-p": ""} {
		if got := sshOption(strings.Fields(options)); got != want {
			t.Errorf("%s: %q, want %q", options, got, want)
		}
	}
}

// TestRulesOfSpawned: a host has a rule for spawned worlds if any site of the job may have some, or
// one that the file does not have.
func TestRulesOfSpawned(t *testing.T) {
	for name, c := range map[string]struct {
		alpha, beta, want int
		part              bool
	}{
		"nowhere": {0, 0, 0, false}, "at one site": {0, 4, 2, false}, "at both": {4, 4, 2, false}, "perhaps at another": {0, 0, 2, true},
	} {
		job := &config.Job{Complete: !c.part}
		for i, slots := range []int{c.alpha, c.beta} {
			s := config.Site{Name: fmt.Sprint("s", i), Client: i, Hosts: []config.Host{{Address: netip.AddrFrom4([4]byte{10, 0, 1, byte(i)}), Procs: 1}}}
			s.Spawn.Slots = slots
			job.Sites = append(job.Sites, s)
		}
		found := 0
		for _, r := range Rules(job) {
			if r.For == "spawned worlds" {
				found++
			}
		}
		if found != c.want {
			t.Errorf("%s: %d rules instead of %d", name, found, c.want)
		}
	}
}
