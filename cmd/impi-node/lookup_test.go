package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/netns"
)

// envDNS is the address of the name server that this binary asks as impi-node, and envServeDNS
// makes it one.
const (
	envDNS      = "IMPI_TEST_DNS"
	envServeDNS = "IMPI_TEST_SERVE_DNS"

	// envNomad is where Nomad's API is: the name server answers as Consul would, by what Nomad knows.
	envNomad = "IMPI_TEST_NOMAD"
)

// askTestDNS has look-ups go to the name server of a test.
func askTestDNS(address string) {
	systemResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", address)
	}}
}

// nameServer knows names of the zone impi.test: node7 is 10.77.0.7, lo7 is 127.0.0.7 and both7
// both of them and an address that no machine has. Pods alpha-0.alpha, ... are 10.77.0.1 and the
// following, beta-0.beta, ... 10.77.0.4, and so are alpha-0.service.consul and its like. To the
// first questions about each name it answers that there is no such name.
type nameServer struct {
	conn  net.PacketConn
	late  int
	nomad string // of envNomad

	mu    sync.Mutex
	asked map[string]int
}

func newNameServer(address string, late int) (*nameServer, error) {
	conn, err := net.ListenPacket("udp", address)
	return &nameServer{conn: conn, late: late, nomad: os.Getenv(envNomad), asked: make(map[string]int)}, err
}

// serve answers until the connection is closed.
func (s *nameServer) serve() {
	b := make([]byte, 1500)
	for {
		n, from, err := s.conn.ReadFrom(b)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(b[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		s.answer(&m)
		if reply, err := m.Pack(); err == nil {
			_, _ = s.conn.WriteTo(reply, from)
		}
	}
}

func (s *nameServer) answer(m *dnsmessage.Message) {
	q := m.Questions[0]
	m.Header = dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true, RecursionAvailable: true}
	m.Additionals = nil
	name := strings.TrimSuffix(q.Name.String(), ".")
	var number byte
	var kind string
	for _, k := range []string{"node", "lo", "both"} {
		if n, err := fmt.Sscanf(name, k+"%d.impi.test", &number); n == 1 && err == nil {
			kind = k
		}
	}
	if service, found := strings.CutSuffix(name, ".service.consul"); found && s.nomad != "" {
		if a, known := s.placed(service); known && q.Type == dnsmessage.TypeA {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET}, Body: &dnsmessage.AResource{A: a},
			})
		} else if !known {
			m.RCode = dnsmessage.RCodeNameError
		}
		return
	}
	for service, first := range map[string]byte{"alpha": 1, "beta": 4} {
		for _, domain := range []string{service, "service.consul"} {
			var index byte
			if n, err := fmt.Sscanf(name, service+"-%d."+domain, &index); n == 1 && err == nil {
				kind, number = "node", index+first
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.Type == dnsmessage.TypeA {
		s.asked[name]++
	}
	if kind == "" || s.asked[name] <= s.late {
		m.RCode = dnsmessage.RCodeNameError
		return
	}
	if q.Type != dnsmessage.TypeA {
		return
	}
	for _, a := range map[string][][4]byte{
		"node": {{10, 77, 0, number}}, "lo": {{127, 0, 0, number}}, "both": {{10, 77, 0, number}, {10, 9, 9, 9}, {127, 0, 0, number}},
	}[kind] {
		m.Answers = append(m.Answers, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET}, Body: &dnsmessage.AResource{A: a},
		})
	}
}

// placed asks Nomad for the address of a service.
func (s *nameServer) placed(service string) (address [4]byte, known bool) {
	answer, err := http.Get(s.nomad + "/v1/service/" + service)
	if err != nil {
		return address, false
	}
	defer answer.Body.Close()
	var found []struct{ Address string }
	if json.NewDecoder(answer.Body).Decode(&found) != nil || len(found) != 1 {
		return address, false
	}
	a, err := netip.ParseAddr(found[0].Address)
	if err != nil || !a.Is4() {
		return address, false
	}
	return a.As4(), true
}

func (s *nameServer) count(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[name]
}

// startNameServer starts one on the loopback network.
func startNameServer(t *testing.T, late int) *nameServer {
	t.Helper()
	s, err := newNameServer("127.0.0.1:0", late)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		s.serve()
		close(done)
	}()
	t.Cleanup(func() {
		_ = s.conn.Close()
		<-done
	})
	return s
}

// namedSite is a site with hosts of these names, or numbers.
func namedSite(name string, hosts ...string) config.Site {
	s := config.Site{Name: name, Server: config.Server{Address: netip.MustParseAddrPort("10.0.0.1:7800")}}
	for i, h := range hosts {
		a, err := netip.ParseAddr(h)
		host := config.Host{Address: a, Pos: config.Pos{File: "job.hcl", Line: i + 1}}
		if err != nil {
			host.Name = h
		}
		s.Hosts = append(s.Hosts, host)
	}
	return s
}

// Names are asked for again until they have addresses, those that have one are not, and how
// long nothing is asked grows.
func TestLateNames(t *testing.T) {
	s := startNameServer(t, 3)
	askTestDNS(s.conn.LocalAddr().String())
	var pauses []time.Duration
	l := &lookup{resolver: systemResolver, isLocal: netip.Addr.IsLoopback, pause: func(_ context.Context, d time.Duration) {
		pauses = append(pauses, d)
		if len(pauses) == 1 {
			s.mu.Lock()
			s.asked["node1.impi.test"] = s.late // comes early
			s.mu.Unlock()
		}
	}}
	got, missing := l.run(t.Context(), []config.Site{namedSite("alpha", "node1.impi.test", "node2.impi.test", "10.77.0.3")}, false)
	if len(missing) > 0 || len(got) != 2 || got["node1.impi.test"].String() != "10.77.0.1" || got["node2.impi.test"].String() != "10.77.0.2" {
		t.Errorf("%v, without %v", got, missing)
	}
	if !slices.Equal(pauses, []time.Duration{firstPause, 2 * firstPause, 4 * firstPause}) {
		t.Errorf("pauses %v", pauses)
	}
	if n := s.count("node1.impi.test"); n != 4 { // the question that came early, and the others before it
		t.Errorf("node1 was asked for %d times", n)
	}
}

// A name that never gets an address is named with the resolver's answer, how long it was asked
// for, and its place in the file.
func TestNamesWithoutAddresses(t *testing.T) {
	s := startNameServer(t, 1<<30)
	askTestDNS(s.conn.LocalAddr().String())
	ctx, cancel := context.WithCancel(t.Context())
	l := &lookup{resolver: systemResolver, isLocal: netip.Addr.IsLoopback, pause: func(context.Context, time.Duration) { cancel() }}
	_, missing := l.run(ctx, []config.Site{namedSite("alpha", "node1.impi.test")}, true)
	found := l.diagnose(&config.Job{Limits: config.Limits{Start: time.Minute}}, missing, time.Minute, false, true)
	if len(found) != 1 || found[0].Pos.Line != 1 {
		t.Fatal(found)
	}
	if text := l.waitsFor(); text != "DNS: node1.impi.test (not found)" {
		t.Errorf("it waits for %q", text)
	}
	for _, want := range []string{"node1.impi.test in 1m0s", "no such host", "limits { start =", "-site"} {
		if !strings.Contains(found[0].Problem+found[0].Remedy, want) {
			t.Errorf("%v lacks %q", found[0], want)
		}
	}
}

// TestNamesOfACommandLine: that a name is not known is final soon, long before the start is over.
func TestNamesOfACommandLine(t *testing.T) {
	s := startNameServer(t, 1<<30)
	t.Setenv(envDNS, s.conn.LocalAddr().String())
	on := `{"engine": "ssh", "hosts": [{"name": "node1.impi.test", "procs": 1}]}`
	status, _, errs := impiNode(t, "", "-on", on, "-n", "1", "/bin/true")
	for _, want := range []string{"no address for node1.impi.test in 4s of look-ups", "use a job file"} {
		if status != statusUsage || !strings.Contains(errs, want) {
			t.Errorf("status %d, or it does not say %q: %s", status, want, errs)
		}
	}
}

// scripted answers at once.
type scripted map[string][]string

func (s scripted) LookupNetIP(_ context.Context, _, name string) (addrs []netip.Addr, err error) {
	if s[name] == nil {
		return nil, errors.New("no such host")
	}
	for _, a := range s[name] {
		addrs = append(addrs, netip.MustParseAddr(a))
	}
	return addrs, nil
}

// Of a machine that has a host of one site, names of the other do not matter; a site that is
// named needs its own.
func TestNamesOfOtherSites(t *testing.T) {
	answers := scripted{"here": {"127.0.0.1"}}
	sites := []config.Site{namedSite("alpha", "here"), namedSite("beta", "there")}
	for _, c := range []struct {
		whole bool
		sites []config.Site
		lacks string
	}{{true, sites, ""}, {false, sites[:1], ""}, {false, sites[1:], "there"}, {true, sites[1:], "there"}} {
		ctx, cancel := context.WithCancel(t.Context())
		l := &lookup{resolver: answers, isLocal: netip.Addr.IsLoopback, pause: func(context.Context, time.Duration) { cancel() }}
		_, missing := l.run(ctx, c.sites, c.whole)
		cancel()
		if lacks := len(missing) > 0; lacks != (c.lacks != "") || lacks && missing[0].Name != c.lacks {
			t.Errorf("%v: %v is missing, want %q", c, missing, c.lacks)
		}
	}
}

func TestOneOfSeveralAddresses(t *testing.T) {
	local := map[string]bool{"10.0.0.5": true, "2001:db8::5": true}
	for name, c := range map[string]struct {
		names scripted
		hosts []string
		want  string // of the first
	}{
		"this machine's":     {scripted{"a": {"10.0.0.1", "10.0.0.5", "127.0.1.1"}}, nil, "10.0.0.5"},
		"loopback alone":     {scripted{"a": {"10.0.0.1", "127.0.1.1"}}, nil, "127.0.1.1"},
		"in any order":       {scripted{"a": {"10.0.0.9", "10.0.0.10", "10.0.0.3"}}, nil, "10.0.0.3"},
		"as the others":      {scripted{"a": {"10.0.0.1", "2001:db8::1"}}, []string{"2001:db8::7"}, "2001:db8::1"},
		"all have both":      {scripted{"a": {"2001:db8::1", "10.0.0.1"}, "b": {"2001:db8::2", "10.0.0.2"}}, []string{"b"}, "10.0.0.1"},
		"family before ours": {scripted{"a": {"2001:db8::5", "10.0.0.1"}, "b": {"10.0.0.2"}}, []string{"b"}, "10.0.0.1"},
		"not to be dialled":  {scripted{"a": {"fe80::1%eth0", "0.0.0.0", "::ffff:10.0.0.7"}}, nil, "10.0.0.7"},
	} {
		l := &lookup{resolver: c.names, isLocal: func(a netip.Addr) bool { return a.IsLoopback() || local[a.String()] }}
		got, missing := l.run(t.Context(), []config.Site{namedSite("alpha", append([]string{"a"}, c.hosts...)...)}, false)
		if len(missing) > 0 || got["a"].String() != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

// One command runs two sites whose hosts, server and head are names that get addresses while it
// starts, and so do commands for each.
func TestJobOfNames(t *testing.T) {
	s := startNameServer(t, 2)
	t.Setenv(envDNS, s.conn.LocalAddr().String())
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "job.key"), []byte("4242\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "job.hcl")
	text := fmt.Sprintf(`job {
  embedded_server { listen = "lo2.impi.test:0" }
  auth "key" { file = "job.key" }
}
program { command = [%q] }
site "alpha" {
  client = 0
  hosts  = "lo[2-3].impi.test"
  procs  = 1
}
site "beta" {
  client = 1
  host {
    address = "lo4.impi.test"
    procs   = 2
  }
}
`+patient, self)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	status, out, errs := impiNode(t, "meet", "-config", file)
	for rank := range 4 {
		if !strings.Contains(out, fmt.Sprintf("[%d] met\n", rank)) {
			t.Errorf("status %d, nothing of rank %d: %s%s", status, rank, out, errs)
		}
	}
	if n := s.count("lo2.impi.test"); status != 0 || n != 3 {
		t.Errorf("status %d; lo2 was asked for %d times, and nodes that are started need not ask", status, n)
	}
	status, out, _ = impiNode(t, "", "validate", file)
	if n := s.count("lo2.impi.test"); status != 0 || n != 3 || !strings.Contains(out, "host names were not looked up") {
		t.Errorf("validate: status %d, %d questions: %s", status, n, out)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(strings.Replace(text, "lo4.", "nowhere.", 1), patient, "limits { start = \"300ms\" }\n", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	status, _, errs = impiNode(t, "", "-config", file, "-site", "beta")
	if status != statusUsage || !strings.Contains(errs, "job.hcl:13:3: error: no address for nowhere.impi.test in 300ms of look-ups: lookup nowhere.impi.test") {
		t.Errorf("status %d: %s", status, errs)
	}
}

// TestMachinesByName: six machines ask a name server on one of them, which answers late, and
// names are what messages call the hosts by.
func TestMachinesByName(t *testing.T) {
	file, machines := machineJob(t, "")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{
		"10.77.0.1:7800": "node1.impi.test:7800", "10.77.0.[1-3]": "node[1-3].impi.test", "10.77.0.[4-6]": "node[4-6].impi.test",
	} {
		b = bytes.Replace(b, []byte(from), []byte(to), 1)
	}
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv(envDNS, "10.77.0.1:5300")
	serveNames(t, machines[0], "10.77.0.1:5300")
	nodes := startOn(t, file, "meet", machines)
	for i, s := range ends(nodes) {
		if s != 0 {
			t.Errorf("machine %d: status %d", i, s)
		}
	}
	for rank := range 12 {
		if head := nodes[rank/6*3]; !strings.Contains(head.out.String(), fmt.Sprintf("[%d] met\n", rank)) {
			t.Errorf("the head of site %d has nothing of rank %d", rank/6, rank)
		}
	}
}

// serveNames runs a name server on a machine until the test is over.
func serveNames(t *testing.T, m *netns.Machine, address string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := m.Command(t.Context(), self)
	cmd.Env = append(os.Environ(), envServeDNS+"="+address)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatalf("the name server: %v", err)
	}
}
