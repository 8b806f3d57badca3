package doctor

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/firewall"
)

// TestWhatIsTried: what a job sends by UDP is tried by UDP, at the first port of a range or, if the
// system chooses the port, at any.
func TestWhatIsTried(t *testing.T) {
	for settings, port := range map[string]string{`port_range = "9000-9009"`: "9000", "": anyUDP} {
		path := filepath.Join(t.TempDir(), "job.hcl")
		text := fmt.Sprintf(`job {
  server = "10.77.0.9:7800"
  auth "none" {}
}
transport "dgram" {
  config { %s }
}
route "*" { prefer = ["dgram"] }
program { command = ["true"] }
site "alpha" {
  client = 0
  host {
    address = "10.77.0.1"
    port    = 7802
    procs   = 1
  }
}
site "beta" {
  client = 1
  host {
    address = "10.77.0.2"
    port    = 7802
    procs   = 1
  }
}
`, settings)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		builtins := []config.Builtin{
			{Name: "shm", Machine: true, Memory: true}, {Name: "tcp", Channels: true},
			{Name: "dgram", NeedsBlock: true, Encrypts: true, Datagrams: true},
		}
		beta := func(a netip.Addr) bool { return a == netip.MustParseAddr("10.77.0.2") }
		job, found := config.Load(path, config.Options{Builtins: builtins, Local: beta})
		if job == nil {
			t.Fatal(found)
		}
		var got []string
		for _, r := range tries(job, beta) {
			got = append(got, r.Proto+" "+r.Host)
		}
		if want := []string{"tcp 10.77.0.9:7800", "tcp 10.77.0.1:7802", "udp 10.77.0.1:" + port}; !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", settings, got, want)
		}
	}
}

// TestReachesByUDP: a port where nobody listens refuses datagrams; one that says nothing, as behind
// a firewall that drops them, is warned of.
func TestReachesByUDP(t *testing.T) {
	silent, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.77.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	at := silent.LocalAddr().String()
	r := firewall.Rule{Host: at, Proto: "udp", Ports: "9000-9009", For: "direct links"}
	if c := dialUDP(t.Context(), r); c.State != Warn || c.Name != "reaches "+at+" by UDP" || !strings.Contains(c.Found, "a firewall may drop UDP") || !strings.Contains(c.Remedy, "let udp 9000-9009") {
		t.Errorf("a silent port: %+v", c)
	}
	silent.Close()
	if c := dialUDP(t.Context(), r); c.State != OK || !strings.Contains(c.Found, "nobody listens yet") || c.Remedy != "" {
		t.Errorf("a closed port: %+v", c)
	}
}
