package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/wireup"
)

func TestBlocks(t *testing.T) {
	for machines, want := range map[string][]Block{
		"0": {{0, 1}}, "0000": {{0, 4}}, "0011": {{0, 2}, {2, 2}}, "0101": {{0, 1}, {1, 1}, {2, 1}, {3, 1}}, "1122211": {{0, 2}, {2, 3}, {5, 2}},
	} {
		var list []int
		for _, c := range machines {
			list = append(list, int(c-'0'))
		}
		if got := Blocks(list); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", machines, got, want)
		}
	}
}

func TestAddressesAreOneWord(t *testing.T) {
	p := NodeAddress{Socket: "impi-X", Address: netip.MustParseAddr("fd00::1"), Head: "[fd00::1]:80", Secret: "S", Server: "[fd00::1]:81"}
	text, err := p.Encode()
	if err != nil || strings.ContainsAny(text, " ;\n") || len(text) > 250 {
		t.Fatalf("%q: %v", text, err) // some process managers have room for 256 bytes only
	}
	if got, err := DecodeNodeAddress(text, 0, 2); err != nil || got != p {
		t.Errorf("%+v, %v, want %+v", got, err, p)
	}
	for text, c := range map[string]struct {
		block, blocks int
		says          string
	}{
		"":               {0, 1, "cannot be read"},
		"{}":             {0, 1, "lacks a socket"},
		`{"socket":"s"}`: {1, 2, "lacks a socket or an address"},
		`{"socket":"s","head":"h","secret":"x","address":"10.0.0.1"}`:          {0, 2, "does not say where the head"},
		`{"socket":"s","head":"10.0.0.1:1","secret":"x","address":"10.0.0.1"}`: {0, 2, "the server are"},
		`{"socket":"s","head":"10.0.0.1:1","address":"10.0.0.1"}`:              {0, 2, "does not say where the head"},
		`{"socket":"s","address":"10.0.0"}`:                                    {1, 2, "cannot be read"},
		strings.Repeat("x", maxAddress+1):                                      {0, 1, "more than 1024"},
	} {
		if p, err := DecodeNodeAddress(text, c.block, c.blocks); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.60q: %+v, %v, want %q", text, p, err, c.says)
		}
	}
}

func TestLibraryFolder(t *testing.T) {
	maps := "7f00-7f01 r-xp 00000000 08:01 12 /usr/lib/libc.so.6\n7f02-7f03 r-xp 00000000 08:01 13                         /opt/my impi/lib/libmpi_abi.so.1\n7f04-7f05 rw-p 00000000 00:00 0\n"
	if got := libraryFolder(maps); got != "/opt/my impi/lib" {
		t.Errorf("%q", got)
	}
	if got := libraryFolder("7f04-7f05 rw-p 00000000 00:00 0\n"); got != "" {
		t.Errorf("%q", got)
	}
}

func TestFindNode(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	t.Setenv(NodeVariable, "")
	if path, err := findNode(); err == nil || !strings.Contains(err.Error(), "set IMPI_NODE to its path") {
		t.Errorf("%q, %v", path, err)
	}
	t.Setenv("IMPI_REPORT", "r.html")
	if _, err := findNode(); needsNode() != "IMPI_REPORT" || err == nil || !strings.Contains(err.Error(), "IMPI_REPORT is set: impi-node, which runs") {
		t.Errorf("%q, %v", needsNode(), err)
	}
	program := filepath.Join(dir, nodeName)
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if path, err := findNode(); err != nil || path != program {
		t.Errorf("%q, %v", path, err)
	}
	t.Setenv(NodeVariable, dir)
	if path, err := findNode(); err == nil || !strings.Contains(err.Error(), "it is no program") {
		t.Errorf("%q, %v", path, err)
	}
}

// serving is a node of an order, and who has started it.
func serving(t *testing.T, o Order) (n *Node, starter *line, err error) {
	t.Helper()
	a, b := net.Pipe()
	starter = newLine(a)
	t.Cleanup(func() { _ = errors.Join(a.Close(), b.Close()) })
	sent := make(chan error, 1)
	go func() { sent <- starter.send(o) }()
	done := make(chan struct{})
	go func() {
		defer close(done)
		n, err = Serve(b)
	}()
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if o.Version != version || len(o.Blocks) == 0 || o.Blocks[0].First != 0 || o.Self >= len(o.Blocks) {
		var p NodeAddress
		if err := starter.receive(&p, maxAddress); err != nil || p.Problem == "" {
			t.Errorf("%+v, %v, want a problem", p, err)
		}
	}
	<-done
	return n, starter, err
}

func TestOrdersAreChecked(t *testing.T) {
	for says, o := range map[string]Order{
		"speaks version 9":        {Version: 9, Blocks: []Block{{0, 1}}},
		"block 1 is none of 1":    {Version: version, Blocks: []Block{{0, 1}}, Self: 1},
		"begins with rank 1, not": {Version: version, Blocks: []Block{{1, 1}}},
		"block 0 is none of 0":    {Version: version},
	} {
		if _, _, err := serving(t, o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", o, err, says)
		}
	}
}

// onlyAddress is a Network of a node that is not the head, which only says where it is.
type onlyAddress struct{ netip.Addr }

func (a onlyAddress) Address() (netip.Addr, error) { return a.Addr, nil }

func (onlyAddress) Listen(netip.Addr) (net.Listener, error) { return nil, errors.New("not the head") }

// TestProcsAreLetIn: procs say who they are, and are taken once, in whatever order they come.
func TestProcsAreLetIn(t *testing.T) {
	blocks := []Block{{0, 1}, {1, 2}}
	n, starter, err := serving(t, Order{Version: version, Blocks: blocks, Self: 1})
	if err != nil {
		t.Fatal(err)
	}
	address := netip.MustParseAddr("127.0.0.1")
	opened := make(chan error, 1)
	go func() { opened <- n.Open(onlyAddress{address}) }()
	var p NodeAddress
	if err := errors.Join(starter.receive(&p, maxAddress), <-opened); err != nil || p.Address != address || p.Head != "" {
		t.Fatalf("%+v, %v", p, err)
	}
	type result struct {
		addresses []NodeAddress
		procs     []Proc
		err       error
	}
	got := make(chan result, 1)
	go func() {
		var r result
		r.addresses, r.procs, r.err = n.Gather(context.Background(), time.Hour)
		got <- r
	}()
	say := func(m wireup.Message) *wireup.Conn {
		c, _, err := wireup.Attach(p.Socket)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Send(m); err != nil {
			t.Fatal(err)
		}
		return c
	}
	attached := func(rank int) wireup.Message {
		return wireup.Message{Kind: wireup.KindAttach, Version: wireup.Version, Peer: wire.WorldRank(rank), Code: rank}
	}
	late := say(attached(2))
	for _, m := range []wireup.Message{attached(0), attached(3), attached(2), {Kind: wireup.KindHello, Version: wireup.Version, Peer: 1}, {Kind: wireup.KindAttach, Peer: 1}} {
		if _, _, err := say(m).Recv(); err == nil {
			t.Errorf("%+v is let in", m)
		}
	}
	first := say(attached(1))
	if err := starter.send([]NodeAddress{{Socket: "a"}, p}); err != nil {
		t.Fatal(err)
	}
	r := <-got
	if r.err != nil || len(r.addresses) != 2 || len(r.procs) != 2 {
		t.Fatalf("%+v", r)
	}
	for i, c := range []*wireup.Conn{first, late} {
		if r.procs[i].PID != os.Getpid() || r.procs[i].AppNum != i+1 {
			t.Errorf("%+v", r.procs[i])
		}
		if err := r.procs[i].Control.Send(wireup.Message{Kind: wireup.KindDown, Code: i}); err != nil {
			t.Fatal(err)
		}
		if m, _, err := c.Recv(); err != nil || m.Code != i {
			t.Errorf("rank %d gets %+v, %v", i+1, m, err)
		}
	}
}

// A rank that may outlive the one that has started their node leaves after the node.
func TestFinalizeFollowsTheNode(t *testing.T) {
	node := exec.Command("cat")
	in, err := node.StdinPipe()
	if err := errors.Join(err, node.Start()); err != nil {
		t.Fatal(err)
	}
	m := &Managed{nodeEnd: watch(node.Process.Pid)}
	if m.nodeEnd == nil {
		t.Fatal("no pidfd of a child")
	}
	left := make(chan error, 1)
	go func() { left <- m.Finalize() }()
	select {
	case err := <-left:
		t.Errorf("it has left, %v, and the node lives", err)
	case <-time.After(50 * time.Millisecond):
	}
	if err := errors.Join(in.Close(), node.Wait(), <-left); err != nil {
		t.Error(err)
	}
}

// TestGatherEndsWithItsStarter, and with its time.
func TestGatherEndsWithItsStarter(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprint(late), func(t *testing.T) {
			n, starter, err := serving(t, Order{Version: version, Blocks: []Block{{0, 2}}})
			if err != nil {
				t.Fatal(err)
			}
			go func() { _ = n.Open(nil) }()
			var p NodeAddress
			if err := starter.receive(&p, maxAddress); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancelCause(context.Background())
			says := "rank 0, which has started this node, has ended"
			if late {
				says = "the time is over"
				cancel(errors.New(says))
			} else {
				_ = starter.Close()
			}
			if _, _, err := n.Gather(ctx, time.Hour); err == nil || !strings.Contains(err.Error(), "2 of 2 procs are missing: "+says) {
				t.Error(err)
			}
			cancel(nil)
		})
	}
}

func TestLinesAreBounded(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	go func() { _, _ = a.Write([]byte(strings.Repeat("x", 10<<10))) }()
	var p NodeAddress
	if err := newLine(b).receive(&p, maxAddress); err == nil || !strings.Contains(err.Error(), "more than 1024") {
		t.Error(err)
	}
}
