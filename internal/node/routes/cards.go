package routes

import (
	"sort"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
)

// Cards are the business cards of a job's procs by their ranks. They take memory for each host, whose
// procs have one card, and not for each proc. The zero value has none.
type Cards struct {
	first []wire.WorldRank // of those that have the card of the same index, ascending
	cards []*dynamic.Card
	n     int
}

// Append gives the proc of the next rank its card; nil: it has none.
func (c *Cards) Append(card *dynamic.Card) {
	if k := len(c.cards) - 1; k < 0 || c.cards[k] != card {
		c.first, c.cards = append(c.first, wire.WorldRank(c.n)), append(c.cards, card)
	}
	c.n++
}

// At is the card of a rank, nil for who has none.
func (c *Cards) At(rank wire.WorldRank) *dynamic.Card {
	if rank < 0 || int(rank) >= c.n {
		return nil
	}
	return c.cards[sort.Search(len(c.first), func(k int) bool { return c.first[k] > rank })-1]
}

// cardOf returns the card of a client's first proc, which is like those of the others as far as routes
// need it, or false if the client has no procs.
func cardOf(rt *Table, client wire.ClientRank) (*dynamic.Card, bool) {
	first := rt.World.Clients[client].FirstProc
	if first < 0 || int(first) >= rt.World.Procs.Len() || rt.World.Procs.At(first).Client != client {
		return nil, false
	}
	return rt.Cards.At(first), true
}
