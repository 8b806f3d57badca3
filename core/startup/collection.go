package startup

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/openimpi/impi/core/wire"
)

// collection holds the values that clients have submitted until their label is complete. It does
// not look into the values: IMPI's server need not know what labels mean (IMPI ch.2, Collection of
// startup information).
type collection struct {
	clients []submitter
	pending []*pendingLabel // ascending
	sent    []wire.Label    // labels that were answered, in ascending order; no label is answered twice
}

type submitter struct {
	highest wire.Label // highest label that it has submitted
	last    wire.Label // last label submitted, not the highest if they did not ascend
	count   int        // labels that it has submitted
	bytes   int        // bytes of its values whose labels are not complete
	done    bool
}

type pendingLabel struct {
	label wire.Label
	mask  wire.ClientMask
	total int
	data  [][]byte // values by client
}

func newCollection(clients int) collection {
	return collection{clients: make([]submitter, clients)}
}

// submit keeps a copy of data. It refuses a label that has been answered, and more data
// than one client may have waiting.
func (k *collection) submit(c wire.ClientRank, l wire.Label, data []byte) error {
	s := &k.clients[c]
	switch {
	case l == wire.NoLabel:
		return fmt.Errorf("%w: COLL of label 0, which is reserved", ErrProtocol)
	case s.count >= MaxLabels:
		return fmt.Errorf("%w: more than %d labels", ErrTooLong, MaxLabels)
	case s.bytes+len(data) > MaxPending:
		return fmt.Errorf("%w: more than %d bytes that wait for other clients", ErrTooLong, MaxPending)
	}
	if _, found := slices.BinarySearch(k.sent, l); found {
		return fmt.Errorf("%w: %v twice, or after a higher label, when it was answered already", ErrProtocol, l)
	}
	p := k.find(l)
	switch {
	case p.mask.Has(c):
		return fmt.Errorf("%w: %v twice", ErrProtocol, l)
	case p.total+len(data) > MaxAnswer-wire.AnswerSize:
		return fmt.Errorf("%w: %v of all clients together has more than %d bytes", ErrTooLong, l, MaxAnswer-wire.AnswerSize)
	}
	p.mask = p.mask.With(c)
	p.data[c] = slices.Clone(data)
	p.total += len(data)
	if s.count == 0 || l > s.highest {
		s.highest = l
	}
	s.last = l
	s.count++
	s.bytes += len(data)
	return nil
}

// find returns the pending label l, which it adds if it is new.
func (k *collection) find(l wire.Label) *pendingLabel {
	at, found := slices.BinarySearchFunc(k.pending, l, func(p *pendingLabel, l wire.Label) int {
		return cmp.Compare(p.label, l)
	})
	if !found {
		p := &pendingLabel{label: l, data: make([][]byte, len(k.clients))}
		k.pending = slices.Insert(k.pending, at, p)
	}
	return k.pending[at]
}

func (k *collection) done(c wire.ClientRank) { k.clients[c].done = true }

func (k *collection) allDone() bool {
	for i := range k.clients {
		if !k.clients[i].done {
			return false
		}
	}
	return true
}

// complete reports whether no client can add to p any more: every client has submitted it or a
// higher label, or is done. IMPI ch.2, COLL command: labels ascend, and only the mandatory ones of
// a version have to be sent.
func (k *collection) complete(p *pendingLabel) bool {
	for c := range k.clients {
		s := &k.clients[c]
		passed := s.done || s.count > 0 && s.highest > p.label
		if !passed && !p.mask.Has(wire.ClientRank(c)) {
			return false
		}
	}
	return true
}

// next removes the lowest complete label and returns its answer: the blocks of all clients,
// in order of client rank.
func (k *collection) next() (l wire.Label, mask wire.ClientMask, answer []byte, ok bool) {
	at := slices.IndexFunc(k.pending, k.complete)
	if at < 0 {
		return 0, 0, nil, false
	}
	p := k.pending[at]
	k.pending = slices.Delete(k.pending, at, at+1)
	where, _ := slices.BinarySearch(k.sent, p.label)
	k.sent = slices.Insert(k.sent, where, p.label)
	b := make([]byte, 0, wire.CommandSize+wire.AnswerSize+p.total)
	b = wire.AppendAnswer(b, p.label, p.mask, p.total)
	for c, data := range p.data {
		b = append(b, data...)
		k.clients[c].bytes -= len(data)
	}
	return p.label, p.mask, b, true
}
