package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/soak"
)

// manyHosts are so many that channels are made on demand, and the tree of a site's hosts has two
// levels below its head.
const manyHosts = 72

// hostByHost starts a job of sites, with so many hosts together, each of one proc with a node of
// its own: on addresses of the loopback network that no other process of tests uses.
func hostByHost(t *testing.T, mode string, sites, hosts int) (prefix string, nodes []*machineNode) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	prefix = fmt.Sprintf("127.%d.%d", 128|os.Getpid()>>8&127, os.Getpid()&255)
	each := hosts / sites
	var text strings.Builder
	fmt.Fprintf(&text, "job {\n  embedded_server { listen = \"%s.1:7800\" }\n  auth \"key\" { env = \"KEY\" }\n}\nprogram { command = [\"PROGRAM\"] }\n", prefix)
	for s := range sites {
		fmt.Fprintf(&text, "site \"s%d\" {\n  client = %d\n  hosts = \"%s.[%d-%d]\"\n  procs = 1\n}\n", s, s, prefix, s*each+1, (s+1)*each)
	}
	path := file(t, text.String())
	for i := range hosts {
		host := fmt.Sprintf("%s.%d", prefix, i+1)
		cmd := exec.CommandContext(t.Context(), self, "-config", path, "-site", fmt.Sprint("s", i/each), "-host", host)
		nodes = append(nodes, startNodeBy(t, cmd, host, mode, "KEY=4711"))
		if i == 0 {
			awaitServer(t, nodes[0], host+":7800")
		}
	}
	return prefix, nodes
}

// awaitServer waits until somebody listens at an address, as a node is to do.
func awaitServer(t *testing.T, n *machineNode, at string) {
	t.Helper()
	for {
		c, err := net.Dial("tcp", at)
		if err == nil {
			_ = c.Close()
			return
		}
		select {
		case <-n.over:
			t.Fatalf("the node has ended, and nobody listens at %s: %v", at, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestManyHosts: a job of two sites goes from its start to its end, with a sum over all hosts. The
// nodes of all run on this machine, of which one alone has the server.
func TestManyHosts(t *testing.T) {
	for _, hosts := range []int{4, manyHosts} {
		t.Run(fmt.Sprint(hosts), func(t *testing.T) {
			if hosts > 4 {
				soak.SkipUnlessSoak(t, "make test has few hosts")
			}
			_, nodes := hostByHost(t, "sum", 2, hosts)
			for i, s := range ends(nodes) {
				if s != 0 {
					t.Errorf("host %d: status %d", i, s)
				}
				head := nodes[i/(hosts/2)*(hosts/2)]
				if want := fmt.Sprintf("[%d] sum %d\n", i, hosts*(hosts-1)/2); !strings.Contains(head.out.String(), want) {
					t.Errorf("the head of host %d does not have %q", i, want)
				}
				if head != nodes[i] && nodes[i].out.String() != "" {
					t.Errorf("host %d writes by itself", i)
				}
			}
		})
	}
}

// TestManyHostsLoseOne: all hosts of a large site say which one is lost, by which others were
// connected with the head.
func TestManyHostsLoseOne(t *testing.T) {
	soak.SkipUnlessSoak(t, fmt.Sprintf("it starts %d nodes", manyHosts))
	const lost = 1
	prefix, nodes := hostByHost(t, "sum and stay", 1, manyHosts)
	for i := range nodes {
		nodes[0].awaits(t, nodes[0].out, fmt.Sprintf("[%d] sum %d\n", i, manyHosts*(manyHosts-1)/2))
	}
	_ = nodes[lost].cmd.Process.Kill()
	want := fmt.Sprintf("site s0: host %s.%d is lost: its connection has ended", prefix, lost+1)
	for i, s := range ends(nodes) {
		if i != lost && (s != 125 || !strings.Contains(nodes[i].err.String(), want)) {
			t.Errorf("host %d: status %d and\n%s", i, s, nodes[i].err)
		}
	}
}
