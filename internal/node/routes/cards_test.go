package routes

import (
	"testing"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// TestCards: each rank has the card that it was given, and the ranks of one host need one entry.
func TestCards(t *testing.T) {
	a, b := &dynamic.Card{Node: "a"}, &dynamic.Card{Node: "b"}
	given := []*dynamic.Card{nil, a, a, a, b, nil, nil, a}
	var c Cards
	for _, card := range given {
		c.Append(card)
	}
	for r, card := range given {
		if got := c.At(wire.WorldRank(r)); got != card {
			t.Errorf("rank %d has %v, want %v", r, got, card)
		}
	}
	for _, r := range []wire.WorldRank{NoRank, 8} {
		if got := c.At(r); got != nil {
			t.Errorf("rank %d has %v", r, got)
		}
	}
	if len(c.cards) != 5 || len(c.first) != 5 {
		t.Errorf("%d entries for %d procs", len(c.cards), len(given))
	}
}

// TestCardOfAClient is that of its first proc; a client without procs has none, wherever it stands.
func TestCardOfAClient(t *testing.T) {
	a, b := &dynamic.Card{Node: "a"}, &dynamic.Card{Node: "b"}
	rt := Table{World: &startup.Job{
		Clients: []startup.ClientInfo{{}, {FirstProc: 1}, {FirstProc: 1}, {FirstProc: 3}},
		Procs:   startup.ListProcs(startup.ProcInfo{}, startup.ProcInfo{Client: 2}, startup.ProcInfo{Client: 2}),
	}}
	rt.Cards.Append(a)
	rt.Cards.Append(b)
	rt.Cards.Append(a)
	for client, want := range []*dynamic.Card{a, nil, b, nil} {
		if got, ok := cardOf(&rt, wire.ClientRank(client)); got != want || ok != (want != nil) {
			t.Errorf("client %d: %v, %v", client, got, ok)
		}
	}
}
