package comm

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrMessage is wrapped by the error for a message of another member that is not valid.
var ErrMessage = errors.New("damaged message of a constructor")

// runSize is the length of an encoded run.
const runSize = 12

// AppendGroup appends an encoded group to b. Its size grows with the number of the group's runs,
// not of its members. The members are numbers that both sides know, such as world ranks or ranks in
// a communicator.
func AppendGroup(b []byte, g *Group) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(g.runs)))
	for _, r := range g.runs {
		b = binary.BigEndian.AppendUint32(b, uint32(r.first))
		b = binary.BigEndian.AppendUint32(b, uint32(r.step))
		b = binary.BigEndian.AppendUint32(b, uint32(r.n))
	}
	return b
}

// ReadGroup decodes a group, whose members must be below limit, from the start of b, which need not
// be trusted, and returns the rest of b. The error is ErrMessage if b does not begin with a valid
// group.
func ReadGroup(b []byte, limit int) (g *Group, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, fmt.Errorf("comm: %w: a group of %d bytes", ErrMessage, len(b))
	}
	n := int(binary.BigEndian.Uint32(b))
	b = b[4:]
	if n > len(b)/runSize || n > limit {
		return nil, nil, fmt.Errorf("comm: %w: %d runs in %d bytes, of at most %d members", ErrMessage, n, len(b), limit)
	}
	list := builder{}
	for i := range n {
		if err := list.read(b[i*runSize:], limit); err != nil {
			return nil, nil, err
		}
	}
	g = list.group()
	if p, twice := g.repeats(limit); twice {
		return nil, nil, fmt.Errorf("comm: %w: member %d appears twice", ErrMessage, p)
	}
	return g, b[n*runSize:], nil
}

func (b *builder) read(from []byte, limit int) error {
	r := run{
		first: int32(binary.BigEndian.Uint32(from)), step: int32(binary.BigEndian.Uint32(from[4:])),
		n: int32(binary.BigEndian.Uint32(from[8:])),
	}
	if r.n < 1 || int(r.n) > limit-b.size || r.step == 0 {
		return fmt.Errorf("comm: %w: a run of %d members in steps of %d, after %d of at most %d", ErrMessage, r.n, r.step, b.size, limit)
	}
	last := int64(r.first) + int64(r.n-1)*int64(r.step)
	if first := int64(r.first); min(first, last) < 0 || max(first, last) >= int64(limit) {
		return fmt.Errorf("comm: %w: members from %d to %d, of at most %d", ErrMessage, first, last, limit)
	}
	b.addRun(r)
	return nil
}
