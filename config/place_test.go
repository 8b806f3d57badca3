package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

const namedJob = `job {
  embedded_server { listen = "head.example:7800" }
  auth "none" {}
}
program { command = ["/bin/true"] }
site "alpha" {
  client = 0
  head   = "head.example:7802"
  hosts  = "node[08-10]"
  procs  = 2
  host {
    address = "localhost"
    procs   = 1
  }
  names {
    server = "names.example:7900"
    auth "none" {}
  }
}
site "beta" {
  client = 1
  host {
    address = "10.0.0.9"
    procs   = 1
  }
}
`

// Names may stand instead of addresses. Without their addresses the job is complete except for
// these, and Unknown returns what each site must look up; with them Unknown returns nothing.
func TestHostNames(t *testing.T) {
	opt := testOptions()
	opt.Local = func(a netip.Addr) bool { return a.IsLoopback() }
	job, found := load(&faults{file: "job.hcl"}, []byte(namedJob), t.TempDir(), opt)
	if job == nil {
		t.Fatal(found)
	}
	unknown := func(s Site) (list []string) {
		for _, n := range s.Unknown() {
			list = append(list, fmt.Sprintf("%s:%d", n.Name, n.Pos.Line))
		}
		return list
	}
	alpha, beta := job.Sites[0], job.Sites[1]
	if got, want := unknown(alpha), []string{"node08:9", "node09:9", "node10:9", "head.example:6", "head.example:2", "names.example:15"}; !slices.Equal(got, want) {
		t.Errorf("alpha must know %q, want %q", got, want)
	}
	if got := unknown(beta); !slices.Equal(got, []string{"head.example:2"}) {
		t.Errorf("beta must know %q", got)
	}
	if !alpha.Hosts[3].Address.IsLoopback() || alpha.Hosts[3].Name != "localhost" {
		t.Errorf("localhost is %+v", alpha.Hosts[3])
	}
	if !alpha.Names.Shared() || alpha.Server.String() != "head.example:7800" || alpha.Hosts[1].String() != "node09" {
		t.Errorf("%+v", alpha)
	}

	opt.Local = nil
	opt.Addresses = map[string]netip.Addr{"names.example": netip.MustParseAddr("10.0.0.77"), "head.example": netip.MustParseAddr("::ffff:10.0.0.8")}
	for i := range 3 {
		opt.Addresses[fmt.Sprintf("node%02d", 8+i)] = netip.AddrFrom4([4]byte{10, 0, 0, byte(8 + i)})
	}
	if job, found = load(&faults{file: "job.hcl"}, []byte(namedJob), t.TempDir(), opt); job == nil {
		t.Fatal(found)
	}
	alpha, beta = job.Sites[0], job.Sites[1]
	if len(alpha.Unknown())+len(beta.Unknown()) != 0 {
		t.Errorf("still to know: %v, %v", alpha.Unknown(), beta.Unknown())
	}
	got := fmt.Sprint(alpha.Hosts[2].Address, alpha.HeadAddress(), alpha.Server.Address, beta.Server.Address, alpha.Names.Server)
	if got != "10.0.0.10 10.0.0.8:7802 10.0.0.8:7800 10.0.0.8:7800 10.0.0.77:7900" {
		t.Error(got)
	}
}

// A name that this machine gives a loopback address cannot be one of several machines.
func TestLoopbackNameElsewhere(t *testing.T) {
	opt := testOptions()
	opt.Local = netip.Addr.IsLoopback
	opt.Addresses = map[string]netip.Addr{"a": netip.MustParseAddr("127.0.1.1"), "b": netip.MustParseAddr("10.0.0.2")}
	text := "program { command = [\"/bin/true\"] }\nsite \"alpha\" {\n client = 0\n embedded_server {}\n auth \"none\" {}\n hosts = \"a,b\"\n procs = 1\n}\n"
	_, found := load(&faults{file: "job.hcl"}, []byte(text), t.TempDir(), opt)
	if len(found) != 1 || found[0].Pos.Line != 6 || !strings.Contains(found[0].Problem, "cannot reach 127.0.1.1") || !strings.Contains(found[0].Remedy, "/etc/hosts") {
		t.Errorf("%v", found)
	}
}

func TestNamesThatAreNone(t *testing.T) {
	for text, want := range map[string]bool{
		"node-1": true, "node_1.example.org": true, "a.b.": true, "1.example": true, "7a": true,
		"127.0.0.256": false, "127.0.0": false, "": false, "a..b": false, "-a": false, "a-": false, "a b": false, "a/b": false, "fe80::1%lo": false,
		strings.Repeat("a", 63): true, strings.Repeat("a", 64): false, strings.Repeat("a.", 127) + "a": false,
	} {
		if isHostName(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

// A name and a number for the same server are no contradiction as long as nobody knows the name's
// address.
func TestServerByNameAndNumber(t *testing.T) {
	text := strings.Replace(namedJob, "client = 1", "client = 1\n  server = \"10.0.0.8:7800\"", 1)
	for address, fault := range map[string]bool{"": false, "10.0.0.8": false, "10.0.0.7": true} {
		opt := testOptions()
		opt.Local = func(netip.Addr) bool { return false }
		if address != "" {
			opt.Addresses = map[string]netip.Addr{"head.example": netip.MustParseAddr(address)}
		}
		_, found := load(&faults{file: "job.hcl"}, []byte(text), t.TempDir(), opt)
		if bad := strings.Contains(fmt.Sprint(found.Err()), "listens on head.example:7800"); bad != fault {
			t.Errorf("head.example is %q: %v", address, found)
		}
	}
}

func TestNetworkChooses(t *testing.T) {
	a := netip.MustParseAddr
	machine := []Interface{
		{"lo", a("127.0.0.1")}, {"eth0", a("192.0.2.9")}, {"eth0", a("fe80::1")},
		{"ib0", a("10.77.0.9")}, {"ib0", a("2001:db8::9")}, {"ib1", a("10.78.0.9")}, {"ib1", a("10.78.1.9")},
	}
	prefix := func(s string) Network { return Network{Prefix: netip.MustParsePrefix(s)} }
	known := a("192.0.2.9")
	for _, x := range []struct {
		n     Network
		known netip.Addr
		want  string // or the error
	}{
		{Network{}, known, "192.0.2.9"},
		{prefix("10.77.0.0/16"), known, "10.77.0.9"},
		{prefix("192.0.2.0/24"), known, "192.0.2.9"},
		{prefix("127.0.0.0/8"), a("127.0.0.7"), "127.0.0.7"}, // which no interface has
		{prefix("2001:db8::/32"), known, "2001:db8::9"},
		{Network{Interface: "ib0"}, known, "10.77.0.9"},
		{Network{Interface: "eth0"}, known, "192.0.2.9"},
		{Network{Interface: "ib1"}, a("10.78.1.9"), "10.78.1.9"},
		{prefix("10.78.0.0/15"), known, "several addresses in the site's network 10.78.0.0/15: [10.78.0.9 10.78.1.9]"},
		{Network{Interface: "ib1"}, known, "several addresses"},
		{prefix("10.79.0.0/16"), known, "no address in the site's network 10.79.0.0/16: eth0 has 192.0.2.9"},
		{Network{Interface: "ib2"}, known, "no address in the site's network ib2"},
	} {
		got, err := x.n.Choose(x.known, machine)
		if err != nil && !strings.Contains(err.Error(), x.want) || err == nil && got.String() != x.want {
			t.Errorf("network %v of %v: %v, %v; not %s", x.n, x.known, got, err, x.want)
		}
	}
}
