package kernel

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/link"
)

var _ link.Lender = (*End)(nil)

// debt is what an end has lent: bytes of its owner's memory that are under way, or
// have arrived, and that the other side has not taken.
type debt struct {
	pieces []loan
	shown  int  // bytes of the owner's that it has not been given back, copied ones included
	back   int  // of these, from the first, those that are the owner's again
	short  bool // the link has not taken all of the last batch
	lost   bool // the link is cut, or the other side has gone
}

// loan is a piece of the lender's memory, or nil for bytes that were copied.
type loan struct {
	memory []byte
	size   int
	at     int // of these, taken
}

// Lend is Send, but what it takes stays where it is, by chance, until the other side
// receives it, as link.Lender has it. It panics if the owner does not keep to that:
// if lent memory has changed by then, or the next batch does not begin with it.
func (e *End) Lend(batch [][]byte) (int, error) {
	d := &e.owed
	if d.shown == 0 && !e.l.k.Chance(e.l.spec.Lend) {
		return e.Send(batch)
	}
	if e.closed || e.ended || e.broken != nil || e.peer.closed {
		return e.Send(nil)
	}
	rest := e.unseen(batch)
	n := e.push(rest)
	d.short = n < link.Len(rest)
	d.note(rest, n, e.l.k.Chance(0.3))
	d.settle()
	n, d.back = d.back, 0
	d.shown -= n
	return n, nil
}

// unseen is what of a batch the link does not have yet. The batch begins with all
// that is lent, as it was.
func (e *End) unseen(batch [][]byte) (rest [][]byte) {
	skip := e.owed.shown
	if link.Len(batch) < skip {
		panic(fmt.Errorf("%w: %s has lent %d bytes and goes on with %d", ErrLoan, e.Name, skip, link.Len(batch)))
	}
	for _, b := range batch {
		if skip >= len(b) {
			skip -= len(b)
			continue
		}
		rest, skip = append(rest, b[skip:]), 0
	}
	return rest
}

// note keeps the first n bytes of what was sent, as they are or where they are.
func (d *debt) note(batch [][]byte, n int, copied bool) {
	d.shown += n
	if d.lost {
		return
	}
	for _, b := range batch {
		if b = b[:min(len(b), n)]; len(b) == 0 {
			continue
		}
		n -= len(b)
		p := loan{size: len(b)}
		if !copied {
			p.memory = b
		}
		d.pieces = append(d.pieces, p)
	}
}

// settle gives copied bytes back that nothing lent is before.
func (d *debt) settle() {
	for len(d.pieces) > 0 && (d.pieces[0].memory == nil || d.pieces[0].at == d.pieces[0].size) {
		d.back += d.pieces[0].size
		d.pieces = d.pieces[1:]
	}
}

// collect is called when e receives bytes: have is what they were when they were sent. It panics
// with ErrLoan if the peer has changed those that it lent, and counts them as its own again.
func (e *End) collect(have []byte) {
	d := &e.peer.owed
	// What was sent before the debt is received before it.
	skip := max(0, e.load()-d.untaken())
	for have = have[min(skip, len(have)):]; len(have) > 0; {
		p := d.first()
		n := min(len(have), p.size-p.at)
		if p.memory != nil && !bytes.Equal(p.memory[p.at:p.at+n], have[:n]) {
			panic(fmt.Errorf("%w: %s has changed lent memory before it was taken", ErrLoan, e.peer.Name))
		}
		p.at += n
		have = have[n:]
	}
	d.settle()
}

// untaken is how many bytes of the debt the other side has not received.
func (d *debt) untaken() (n int) {
	for _, p := range d.pieces {
		n += p.size - p.at
	}
	return n
}

// first is the first piece that is not taken.
func (d *debt) first() *loan {
	for i := range d.pieces {
		if p := &d.pieces[i]; p.at < p.size {
			return p
		}
	}
	return nil
}

// keep ends the loan by copying: what follows is up to the link alone.
func (d *debt) keep() { d.pieces, d.lost = nil, true }

// forfeit ends the loan: what was not taken is lost.
func (e *End) forfeit() {
	to := e.peer
	to.in = to.in[:len(to.in)-e.owed.untaken()]
	to.landed = min(to.landed, len(to.in))
	e.owed.keep()
}

// ErrLoan means that somebody who lends does not keep to link.Lender.
var ErrLoan = errors.New("kernel: a loan is not kept to")
