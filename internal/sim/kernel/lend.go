package kernel

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/openimpi/impi/plugins/sdk/link"
)

var _ link.Lender = (*End)(nil)

// debt is what an end has lent: bytes of its owner's memory that are under way, or have arrived and
// were not received by the other side.
type debt struct {
	pieces []loan
	shown  int  // bytes of the owner that were not returned to it yet, including copied ones
	back   int  // how many of them, from the beginning, belong to the owner again
	short  bool // the link has not taken all of the last batch
	lost   bool // the link is cut, or the other side has closed
}

// loan is a piece of the lender's memory, or nil for bytes that were copied.
type loan struct {
	memory []byte
	size   int
	at     int // bytes of the loan that were received
}

// Lend is like Send, but by chance the bytes that it accepts stay in the owner's memory until the
// other side receives them; see link.Lender. It panics if the owner breaks that contract: if lent
// memory has changed by then, or the next batch does not begin with the lent bytes.
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

// unseen returns the part of a batch that the link does not have yet. The batch begins with all
// bytes that are lent.
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

// note records the first n bytes of what was sent: copied, or lent where they are.
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

// settle gives back copied bytes that do not follow lent ones.
func (d *debt) settle() {
	for len(d.pieces) > 0 && (d.pieces[0].memory == nil || d.pieces[0].at == d.pieces[0].size) {
		d.back += d.pieces[0].size
		d.pieces = d.pieces[1:]
	}
}

// collect is called when e receives bytes; have is a copy of them from when they were sent. If they
// were lent, it counts them as the peer's again, and panics with ErrLoan if the peer has changed
// them.
func (e *End) collect(have []byte) {
	d := &e.peer.owed
	// Bytes that were sent before the lent ones are received before them.
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

func (d *debt) untaken() (n int) {
	for _, p := range d.pieces {
		n += p.size - p.at
	}
	return n
}

func (d *debt) first() *loan {
	for i := range d.pieces {
		if p := &d.pieces[i]; p.at < p.size {
			return p
		}
	}
	return nil
}

// keep ends the loan as if everything had been copied.
func (d *debt) keep() { d.pieces, d.lost = nil, true }

// forfeit ends the loan: what was not received is lost.
func (e *End) forfeit() {
	to := e.peer
	to.in = to.in[:len(to.in)-e.owed.untaken()]
	to.landed = min(to.landed, len(to.in))
	e.owed.keep()
}

// ErrLoan means that a lender has broken the contract of link.Lender.
var ErrLoan = errors.New("kernel: a loan is not kept to")
