package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/firewall"
	"github.com/openimpi/impi/internal/netns"
	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
)

// TestPortsSuffice: a job of two sites of three machines runs, with all its direct links and with
// names that its procs publish, between firewalls that let in what impi-node ports prints and
// nothing else, whichever settings say where everything listens. One with a rule less does not.
func TestPortsSuffice(t *testing.T) {
	const (
		ports    = "ports = \"7800-7829\"\n"
		anyPort  = `embedded_server { listen = "10.77.0.1:0" }`
		tcpAlone = "route \"*\" { prefer = [\"tcp\"] }\n"
		itself   = "transport \"tcp\" {\n  config { port_range = \"7900-7919\" }\n}\n" + tcpAlone
	)
	for name, c := range map[string]struct{ server, more string }{
		"ports":       {anyPort, ports + tcpAlone},
		"ports, quic": {anyPort, ports + overQUIC},
		"channels by quic, after tcp": {anyPort, ports + strings.Replace(overQUIC, `{ prefer = ["quic"] }`,
			"{\n  prefer = [\"tcp\", \"quic\"]\n  direct = false\n}", 1)},
		"each by itself": {`embedded_server { listen = "10.77.0.1:7800" }`,
			itself + "spawn { slots = 0 }\n"},
	} {
		t.Run(name, func(t *testing.T) {
			machines := netns.New(t, 6)
			certs := certificatesOn(t, pkitest.Authority(t), time.Now())
			file := machineJobAt(t, c.server, c.more)
			wall(t, machines, rulesOf(t, file, certs))
			mode := "by name"
			if strings.Contains(c.more, "direct = false") { // by which no two worlds meet
				mode = "meet"
			}
			for i, n := range runBehindWall(t, file, mode, certs, machines) {
				if n.status != 0 || strings.Contains(n.log, "through the agents") {
					t.Errorf("machine %d: status %d\n%s", i, n.status, n.log)
				}
			}
		})
	}
	const apart = "route \"alpha\" { direct = false }\nroute \"beta\" { direct = false }\n"
	for name, c := range map[string]struct {
		server, more string
		port         int
	}{
		"spawned":                 {anyPort, ports + tcpAlone, 0},
		"spawned, each by itself": {`embedded_server { listen = "10.77.0.1:7800" }`, itself, 0},
		"spawned, a port for channels, no direct links": {anyPort, ports + itself + apart, 7850},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(spawnOrders, "4:6:alpha 8:6:beta")
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			machines := netns.New(t, 6)
			file := machineJobAt(t, c.server, c.more+fmt.Sprintf("spawn {\n  slots = 6\n  allow = [%q]\n}\n", self))
			if c.port != 0 {
				withPorts(t, file, c.port)
			}
			wall(t, machines, rulesOf(t, file, ""))
			children := 0
			for i, n := range runBehindWall(t, file, "spawnTree", "", machines) {
				if n.status != 0 || strings.Contains(n.out, "not spawned") {
					t.Errorf("machine %d: status %d\n%s%s", i, n.status, n.out, n.log)
				}
				children += strings.Count(n.out, "child at ")
			}
			if children != 12 {
				t.Errorf("%d procs were spawned", children)
			}
		})
	}
	for what, says := range map[string]string{
		"the head of the site": "", "the job's server": "", "channels": "take connections at ports 7803-7829, by TCP, and by UDP for quic: let those through between all hosts; impi-node ports prints the rules",
	} {
		t.Run("no rule for "+what, func(t *testing.T) {
			for limit := 5; ; limit *= 3 {
				machines := netns.New(t, 6)
				file := machineJobAt(t, anyPort, ports+tcpAlone+fmt.Sprintf("limits { start = \"%ds\" }\n", limit))
				wall(t, machines, slices.DeleteFunc(rulesOf(t, file, ""), func(r firewall.Rule) bool { return r.For == what || what == "channels" && r.Ports == "7803-7829" }))
				said := ""
				for i, n := range runBehindWall(t, file, "meet", "", machines) {
					if said += n.log; n.status == 0 {
						t.Errorf("machine %d: status 0\n%s", i, n.log)
					}
				}
				if t.Failed() || strings.Contains(said, says) {
					return
				}
				if limit > 300 {
					t.Fatalf("nobody says %q:\n%s", says, said)
				} // else this computer was too slow to come to that
			}
		})
	}
}

// withPorts gives the hosts of machineJobAt a port for channels.
func withPorts(t *testing.T, file string, port int) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for first, list := range map[int]string{1: `"10.77.0.[1-3]"`, 4: `"10.77.0.[4-6]"`} {
		hosts := ""
		for i := range 3 {
			hosts += fmt.Sprintf("  host {\n    address = \"10.77.0.%d\"\n    procs   = 2\n    port    = %d\n  }\n", first+i, port)
		}
		text = strings.Replace(text, "  hosts  = "+list+"\n  procs  = 2\n", hosts, 1)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// ended is how a node has ended.
type ended struct {
	status   int
	out, log string
}

func runBehindWall(t *testing.T, file, mode, certs string, machines []*netns.Machine) (list []ended) {
	t.Helper()
	nodes := make([]*machineNode, len(machines))
	for i, m := range machines {
		nodes[i] = startNode(t, m, mode, "CERTS="+certs, "-config", file)
	}
	for i, s := range ends(nodes) {
		list = append(list, ended{s, nodes[i].out.String(), nodes[i].err.String()})
	}
	return list
}

func rulesOf(t *testing.T, file, certs string) (rules []firewall.Rule) {
	t.Helper()
	t.Setenv("CERTS", certs)
	status, out, errs := impiNode(t, "hello", "ports", "-json", file)
	if status != 0 {
		t.Fatalf("status %d: %s", status, errs)
	}
	if err := json.Unmarshal([]byte(out), &rules); err != nil {
		t.Fatal(err)
	}
	return rules
}

// wall makes all of TCP and UDP between machines vanish, but for what goes to a port that a rule is
// for, and the answers from there.
func wall(t *testing.T, machines []*netns.Machine, rules []firewall.Rule) {
	t.Helper()
	for _, m := range machines {
		run := func(args string) {
			if b, err := m.Command(t.Context(), "ip", strings.Fields(args)...).CombinedOutput(); err != nil {
				t.Fatalf("ip %s: %v: %s", args, err, b)
			}
		}
		added := make(map[string]bool)
		allow := func(to, proto, ports string) {
			args := fmt.Sprintf("rule add prio 100 to %s ipproto %s %s lookup main", to, proto, ports)
			if !added[args] {
				added[args] = true
				run(args)
			}
		}
		for _, r := range rules {
			if r.Ports == "any" {
				r.Ports = systemPorts(t, m)
			}
			if slices.Contains(r.From, m.Address) {
				allow(r.Host, r.Proto, "dport "+r.Ports)
			}
			for _, from := range r.From {
				if r.Host == m.Address && from != "Prometheus" {
					allow(from, r.Proto, "sport "+r.Ports)
				}
			}
		}
		for _, proto := range []string{"tcp", "udp"} {
			run("rule add prio 200 to 10.77.0.0/24 ipproto " + proto + " blackhole")
		}
	}
}

// systemPorts are those that the system of a machine gives to who asks for any.
func systemPorts(t *testing.T, m *netns.Machine) string {
	t.Helper()
	b, err := m.Command(t.Context(), "cat", "/proc/sys/net/ipv4/ip_local_port_range").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(b)), "-")
}

// byName has the second half of the procs publish a port, to which the first half connects by its
// name. Both ask the job's server from the last of their hosts.
func byName() error {
	const service = "meeting"
	world := mpi.World()
	half := world.Size() / 2
	second := world.Rank() / half
	comm, err := world.Split(second, 0)
	if err != nil {
		return err
	}
	port, last := "", half-1
	meet := comm.Connect
	if second == 1 {
		meet = comm.Accept
	}
	switch asks := comm.Rank() == last; {
	case asks && second == 1:
		if port, err = mpi.OpenPort(nil); err == nil {
			err = mpi.PublishName(service, nil, port)
		}
	case asks:
		for err = mpi.ErrName; errors.Is(err, mpi.ErrName); {
			port, err = mpi.LookupName(service, nil)
		}
	}
	if err != nil {
		return err
	}
	other, err := meet(port, nil, last)
	if err != nil {
		return err
	}
	in, peer := []int{0}, comm.Rank()
	if _, err := mpi.Sendrecv(other, []int{world.Rank()}, peer, 1, in, peer, 1); err != nil {
		return err
	}
	if want := (world.Rank() + half) % world.Size(); in[0] != want {
		return fmt.Errorf("rank %d is there instead of %d", in[0], want)
	}
	if err := other.Disconnect(); err != nil {
		return err
	}
	if second == 1 && comm.Rank() == last {
		return errors.Join(mpi.UnpublishName(service, nil, port), mpi.ClosePort(port))
	}
	return nil
}
