package routes

import (
	"bytes"
	"fmt"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// Cards returns the business card of a proc by its rank, or nil if the proc has none. It is nil if
// no proc has one.
type Cards func(rank wire.WorldRank) *dynamic.BusinessCard

// ReadCards checks the cards of a job's procs. Each is decoded again when it is requested: a node
// has links to few of the hosts of a large job, and decoded cards would take more memory than all
// other data about the other hosts. procs must not change any more. An error is about the proc of
// rank.
func ReadCards(procs *startup.Procs) (c Cards, rank wire.WorldRank, err error) {
	var last []byte // of the proc before
	for r, p := range procs.All() {
		if bytes.Equal(p.Card, last) {
			continue
		}
		if last = p.Card; len(last) > 0 {
			if _, err := dynamic.ParseBusinessCard(last); err != nil {
				return nil, r, err
			}
		}
	}
	return func(rank wire.WorldRank) *dynamic.BusinessCard {
		if rank < 0 || int(rank) >= procs.Len() {
			return nil
		}
		text := procs.At(rank).Card
		if len(text) == 0 {
			return nil
		}
		card, err := dynamic.ParseBusinessCard(text)
		if err != nil {
			panic(fmt.Sprintf("the card of rank %d, which was read before: %v", rank, err))
		}
		return &card
	}, 0, nil
}

// At returns the card of a rank, or nil if it has none.
func (c Cards) At(rank wire.WorldRank) *dynamic.BusinessCard {
	if c == nil {
		return nil
	}
	return c(rank)
}

// cardOf returns the card of a client's first proc, which is like those of the others as far as
// routes need it, or false if the client has no procs.
func cardOf(rt *Table, client wire.ClientRank) (*dynamic.BusinessCard, bool) {
	first := rt.World.Clients[client].FirstProc
	if first < 0 || int(first) >= rt.World.Procs.Len() || rt.World.Procs.At(first).Client != client {
		return nil, false
	}
	return rt.Cards.At(first), true
}
