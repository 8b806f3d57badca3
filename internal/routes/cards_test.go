package routes

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// TestCards: each rank has the card that it was given, decoded; a wrong one is found before it is
// needed.
func TestCards(t *testing.T) {
	text := func(node string) (b []byte) {
		c := dynamic.BusinessCard{Version: dynamic.CardVersion, Node: node, ByteOrder: dynamic.LittleEndian, Addresses: []dynamic.TransportAddress{{Transport: "tcp", Address: "10.0.0.1:1"}}}
		b, err := c.AppendText(nil)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	a, b := text("a"), text("b")
	var procs startup.Procs
	given := []string{"", "a", "a", "a", "b", "", "", "a"}
	for _, node := range given {
		procs.Add(startup.ProcInfo{Card: map[string][]byte{"a": a, "b": b}[node]})
	}
	c, _, err := ReadCards(&procs)
	if err != nil {
		t.Fatal(err)
	}
	for r, node := range given {
		if got := c.At(wire.WorldRank(r)); (got != nil) != (node != "") || got != nil && (got.Node != node || len(got.Addresses) != 1) {
			t.Errorf("rank %d has %v, want that of %q", r, got, node)
		}
	}
	for _, r := range []wire.WorldRank{NoRank, 8} {
		if got := c.At(r); got != nil || Cards(nil).At(r) != nil {
			t.Errorf("rank %d has %v", r, got)
		}
	}
	procs.Add(startup.ProcInfo{Card: []byte("no card")})
	if _, rank, err := ReadCards(&procs); err == nil || rank != 8 {
		t.Errorf("rank %d: %v, want an error of rank 8", rank, err)
	}
}

// TestCardsOfManyHosts: a node keeps nothing more for hosts that it has nothing to do with, however
// many they are.
func TestCardsOfManyHosts(t *testing.T) {
	const hosts = 20_000
	var procs startup.Procs
	for h := range hosts {
		c := dynamic.BusinessCard{Version: dynamic.CardVersion, Node: fmt.Sprintf("%032x", h), ByteOrder: dynamic.LittleEndian, Addresses: []dynamic.TransportAddress{{Transport: "tcp", Address: "10.0.0.1:1"}}}
		text, err := c.AppendText(nil)
		if err != nil {
			t.Fatal(err)
		}
		procs.Add(startup.ProcInfo{ID: wire.Proc{PID: int64(h)}, Host: wire.HostRank(h), Card: text})
	}
	inUse := func() int {
		runtime.GC()
		runtime.GC() // pools are emptied at the second one
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return int(s.HeapAlloc)
	}
	before := inUse()
	cards, _, err := ReadCards(&procs)
	if err != nil {
		t.Fatal(err)
	}
	if kept := inUse() - before; kept > 8*hosts { // a pointer for each host, at most; what is measured has noise
		t.Errorf("%d bytes are kept for the cards of %d hosts", kept, hosts)
	}
	if last := cards.At(hosts - 1); last.Node != fmt.Sprintf("%032x", hosts-1) {
		t.Errorf("the last host has %+v", last)
	}
	runtime.KeepAlive(&procs)
}

// TestCardOfAClient is that of its first proc; a client without procs has none, wherever it stands.
func TestCardOfAClient(t *testing.T) {
	a, b := &dynamic.BusinessCard{Node: "a"}, &dynamic.BusinessCard{Node: "b"}
	rt := Table{World: &startup.Job{
		Clients: []startup.ClientInfo{{}, {FirstProc: 1}, {FirstProc: 1}, {FirstProc: 3}},
		Procs:   startup.ListProcs(startup.ProcInfo{}, startup.ProcInfo{Client: 2}, startup.ProcInfo{Client: 2}),
	}}
	rt.Cards = func(r wire.WorldRank) *dynamic.BusinessCard { return []*dynamic.BusinessCard{a, b, a}[r] }
	for client, want := range []*dynamic.BusinessCard{a, nil, b, nil} {
		if got, ok := cardOf(&rt, wire.ClientRank(client)); got != want || ok != (want != nil) {
			t.Errorf("client %d: %v, %v", client, got, ok)
		}
	}
}
