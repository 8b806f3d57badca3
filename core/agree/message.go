package agree

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// ErrMessage is wrapped by the error for a message that no member sends.
var ErrMessage = errors.New("agree: malformed message")

type kind byte

const (
	contribute kind = 1 + iota // to the parent: the combined value of the sender and all below it
	decide                     // the answer to contribute: the result
	recall                     // to a new parent: the result that the sender already has
)

type value struct {
	flags  uint64
	max    [2]uint64
	low    uint64 // all contributors have returned from the agreements below this number
	failed Set
	acked  Set // failed members that all contributors have acknowledged
}

func (v value) with(o value) value {
	return value{
		flags:  v.flags & o.flags,
		max:    [2]uint64{max(v.max[0], o.max[0]), max(v.max[1], o.max[1])},
		low:    min(v.low, o.low),
		failed: v.failed.union(o.failed),
		acked:  v.acked.intersect(o.acked),
	}
}

func (v value) equal(o value) bool {
	return v.flags == o.flags && v.max == o.max && v.low == o.low && v.failed.Equal(o.failed) && v.acked.Equal(o.acked)
}

// A message is, in network byte order,
//
//	byte    kind
//	uint64  sequence number of the agreement
//	uint64  low
//	uint64  flags
//	uint64  the first number
//	uint64  the second number
//	set     failed
//	set     acked
//
// A set is a byte and then, if that is 0, runs: how many there are and, of each, how many ranks
// were left out before it and how many it has less one, as varints; if it is 1, a bitmap of all
// members, the first one in the lowest bit of the first byte. It is what is shorter, or runs if
// they are as long, so that each set has one form.
const (
	headerSize = 1 + 5*8
	minSize    = headerSize + 2*2 // with two empty sets
	formRuns   = 0
	formBitmap = 1
)

// MaxMessage returns the maximum size in bytes of a message in a group of that size.
func MaxMessage(size int) int { return headerSize + 2*(1+bitmapSize(size)) }

func bitmapSize(size int) int { return (size + 7) / 8 }

type message struct {
	kind     kind
	sequence uint64
	value    value
}

func (m message) append(b []byte, size int) []byte {
	b = append(b, byte(m.kind))
	for _, n := range [...]uint64{m.sequence, m.value.low, m.value.flags, m.value.max[0], m.value.max[1]} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	b = appendSet(b, m.value.failed, size)
	return appendSet(b, m.value.acked, size)
}

func appendSet(b []byte, s Set, size int) []byte {
	var runs []byte
	count, end := uint64(0), 0
	for r := s.nextIn(0); r >= 0 && len(runs) <= bitmapSize(size); r = s.nextIn(end) {
		last := r
		for s.Has(last + 1) {
			last++
		}
		runs = binary.AppendUvarint(runs, uint64(r-end))
		runs = binary.AppendUvarint(runs, uint64(last-r))
		count, end = count+1, last+1
	}
	counted := binary.AppendUvarint(nil, count)
	if len(counted)+len(runs) <= bitmapSize(size) {
		b = append(append(b, formRuns), counted...)
		return append(b, runs...)
	}
	b = append(b, formBitmap)
	for i := range bitmapSize(size) {
		var w uint64
		if i/8 < len(s.words) {
			w = s.words[i/8]
		}
		b = append(b, byte(w>>(i%8*8)))
	}
	return b
}

func parse(b []byte, size int) (m message, err error) {
	if len(b) < minSize || len(b) > MaxMessage(size) {
		return m, fmt.Errorf("%w: %d bytes, with %d members they are %d to %d", ErrMessage, len(b), size, minSize, MaxMessage(size))
	}
	m.kind = kind(b[0])
	if m.kind < contribute || m.kind > recall {
		return m, fmt.Errorf("%w: kind %d", ErrMessage, m.kind)
	}
	v := &m.value
	for i, n := range [...]*uint64{&m.sequence, &v.low, &v.flags, &v.max[0], &v.max[1]} {
		*n = binary.BigEndian.Uint64(b[1+8*i:])
	}
	rest := b[headerSize:]
	if v.failed, rest, err = parseSet(rest, size); err == nil {
		v.acked, rest, err = parseSet(rest, size)
	}
	switch {
	case err != nil:
		return m, err
	case len(rest) > 0:
		return m, fmt.Errorf("%w: %d bytes after its end", ErrMessage, len(rest))
	case !v.acked.within(v.failed):
		return m, fmt.Errorf("%w: acknowledged %v, of failed %v", ErrMessage, v.acked, v.failed)
	case v.low > m.sequence:
		return m, fmt.Errorf("%w: agreement %d, its sender has returned from all below %d", ErrMessage, m.sequence, v.low)
	}
	return m, nil
}

func parseSet(b []byte, size int) (s Set, rest []byte, err error) {
	if len(b) == 0 {
		return s, nil, fmt.Errorf("%w: it ends before a set", ErrMessage)
	}
	rest = b[1:]
	switch b[0] {
	case formRuns:
		s, rest, err = parseRuns(rest, size)
	case formBitmap:
		s, rest, err = parseBitmap(rest, size)
	default:
		err = fmt.Errorf("%w: a set of form %d", ErrMessage, b[0])
	}
	if err != nil {
		return Set{}, nil, err
	}
	if used := b[:len(b)-len(rest)]; !slices.Equal(used, appendSet(nil, s, size)) {
		return Set{}, nil, fmt.Errorf("%w: the set %v in %d bytes, not in its one form", ErrMessage, s, len(used))
	}
	return s, rest, nil
}

func parseRuns(b []byte, size int) (s Set, rest []byte, err error) {
	count, b, err := varint(b, size)
	for end := 0; err == nil && count > 0; count-- {
		var before, more int
		if before, b, err = varint(b, size-end); err != nil {
			break
		}
		if more, b, err = varint(b, size-end-before-1); err != nil {
			break
		}
		for r := end + before; r <= end+before+more; r++ {
			s.add(r)
		}
		end += before + more + 1
	}
	return s, b, err
}

func varint(b []byte, limit int) (int, []byte, error) {
	n, used := binary.Uvarint(b)
	if used <= 0 || limit < 0 || n > uint64(limit) {
		return 0, nil, fmt.Errorf("%w: a run of ranks ends too early, or is not in the group", ErrMessage)
	}
	return int(n), b[used:], nil
}

func parseBitmap(b []byte, size int) (s Set, rest []byte, err error) {
	n := bitmapSize(size)
	if len(b) < n {
		return s, nil, fmt.Errorf("%w: a bitmap of %d bytes, with %d members it has %d", ErrMessage, len(b), size, n)
	}
	s.words = make([]uint64, (n+7)/8)
	for i, c := range b[:n] {
		s.words[i/8] |= uint64(c) << (i % 8 * 8)
	}
	if s = s.trim(); s.nextIn(size) >= 0 {
		return s, nil, fmt.Errorf("%w: a bitmap has ranks above %d", ErrMessage, size-1)
	}
	return s, b[n:], nil
}
