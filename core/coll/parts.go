package coll

import (
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
)

// parts divide a buffer, with one part for each member of a communicator or team. They have equal
// length (block), or the given places and lengths (starts and counts), or are n nearly equal ones.
// With ranks, part i is the part of ranks[i]; with via as well, that of ranks[via[i]].
type parts struct {
	buf    []byte
	ranks  *comm.Group
	via    *comm.Group
	block  int // size in bytes
	starts []int
	counts []int // elements
	size   int   // bytes of an element
	n      int
}

func even(buf []byte, block int) parts { return parts{buf: buf, block: block} }

// divided returns buf cut into n parts of nearly equal numbers of elements; parts from n on are
// empty.
func divided(buf []byte, k datatype.Kind, n int) parts {
	return parts{buf: buf, size: k.Size(), n: n}
}

func (b *parts) where(i int) (start, end int) {
	if b.via != nil {
		place, _ := b.via.At(i)
		i = int(place)
	}
	if b.ranks != nil {
		rank, _ := b.ranks.At(i)
		i = int(rank)
	}
	switch {
	case b.starts != nil:
		return b.starts[i], b.starts[i] + b.counts[i]*b.size
	case b.n > 0 && i >= b.n:
		return len(b.buf), len(b.buf)
	case b.n > 0:
		elements := len(b.buf) / b.size
		each, more := elements/b.n, elements%b.n
		start = (i*each + min(i, more)) * b.size
		end = start + each*b.size
		if i < more {
			end += b.size
		}
		return start, end
	}
	return i * b.block, (i + 1) * b.block
}

// of returns a selection of the parts: part i of it is part some[i] of b.
func (b parts) of(some *comm.Group) parts {
	if b.ranks == nil {
		b.ranks = some
	} else {
		b.via = some
	}
	return b
}

func (b *parts) at(i int) []byte {
	start, end := b.where(i)
	return b.buf[start:end:end]
}

// span returns parts i to j-1 in one piece; they must follow each other.
func (b *parts) span(i, j int) []byte {
	start, _ := b.where(i)
	_, end := b.where(j - 1)
	return b.buf[start:end:end]
}

// layout checks the counts and displacements of a buffer of n parts. Without
// displacements the parts follow each other.
func (p plan) layout(name string, buf []byte, counts, displs []int, n int) (parts, error) {
	if err := checkBuffer(name, buf, p.k); err != nil {
		return parts{}, err
	}
	if len(counts) != n || displs != nil && len(displs) != n {
		return parts{}, fmt.Errorf("coll: %w: %s has %d counts and %d displacements for %d members",
			ErrCount, name, len(counts), len(displs), n)
	}
	b := parts{buf: buf, counts: counts, size: p.k.Size(), starts: p.ints(n)}
	elements, next := len(buf)/p.k.Size(), 0
	for i, c := range counts {
		at := next
		if displs != nil {
			at = displs[i]
		}
		if c < 0 || at < 0 {
			return parts{}, fmt.Errorf("coll: %w: %s has %d elements at %d for rank %d", ErrCount, name, c, at, i)
		}
		if c > elements || at > elements-c {
			return parts{}, fmt.Errorf("coll: %w: %s of %d elements ends before the %d at %d for rank %d",
				ErrBuffer, name, elements, c, at, i)
		}
		b.starts[i] = at * b.size
		next = at + c
	}
	return b, nil
}

// packed reports whether n parts follow each other from the buffer's start, and how many bytes all
// have.
func (b *parts) packed(n int) (total int, ok bool) {
	ok = true
	for i := range n {
		start, end := b.where(i)
		ok = ok && (start == end || start == total)
		total += end - start
	}
	return total, ok
}

// chosen are the non-empty parts of some ranks; with short, only those that are shorter than XSIZE.
type chosen struct {
	parts
	ranks *comm.Group
	short bool
	plan  plan
}

func (c *chosen) master() int {
	rank, _ := c.ranks.At(0)
	return int(rank)
}

func (c *chosen) wants(bytes int) bool {
	return bytes > 0 && (!c.short || c.plan.short(bytes/c.plan.k.Size()))
}

func (c *chosen) any() bool {
	total, _, _ := c.bytes()
	return total > 0
}

// bytes returns the length of the chosen parts together, and where they start if they lie in the
// buffer one after the other (joined).
func (c *chosen) bytes() (total, start int, joined bool) {
	joined = true
	for r := range c.ranks.All() {
		from, to := c.where(int(r))
		if !c.wants(to - from) {
			continue
		}
		if total == 0 {
			start = from
		}
		joined = joined && from == start+total
		total += to - from
	}
	return total, start, joined
}

// together returns a buffer for the chosen parts one after the other: their place in the buffer if
// they already lie so (own), else scratch memory to copy to or from.
func (s *Schedule) together(c *chosen) (whole []byte, own bool) {
	total, start, joined := c.bytes()
	if joined {
		return c.buf[start : start+total : start+total], true
	}
	return s.scratch.get(total), false
}

// pack plans to copy the chosen parts into whole now; unpack plans to copy them out of it after the
// round.
func (s *Schedule) pack(c *chosen, whole []byte) {
	c.each(whole, func(part, piece []byte) { s.copy(piece, part) })
}

func (s *Schedule) unpack(c *chosen, whole []byte) {
	c.each(whole, func(part, piece []byte) {
		s.afterwards(Step{Action: Copy, Dst: part, Src: piece})
	})
}

func (c *chosen) each(whole []byte, f func(part, piece []byte)) {
	for r := range c.ranks.All() {
		part := c.at(int(r))
		if !c.wants(len(part)) {
			continue
		}
		f(part, whole[:len(part)])
		whole = whole[len(part):]
	}
}
