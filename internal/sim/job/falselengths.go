package job

import (
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// falseLengths writes false lengths into packets that have no data, as LAM/MPI does. It changes
// bytes, but never how many there are.
type falseLengths struct {
	*kernel.End
	truth   scan
	scratch []byte
	seed    uint64
	only    func(wire.PacketType) bool // whether packets of a type get false lengths
}

// newFalseLengths wraps the link of an end. seed decides the false lengths of each packet, so that
// sending the same packet again gives the same bytes.
func newFalseLengths(e *kernel.End, seed uint64, only func(wire.PacketType) bool) *falseLengths {
	return &falseLengths{End: e, seed: seed, only: only}
}

var _ link.Link = (*falseLengths)(nil)

// Send sends batch with false lengths.
func (x *falseLengths) Send(batch [][]byte) (int, error) {
	x.scratch = x.scratch[:0]
	for _, b := range batch {
		x.scratch = append(x.scratch, b...)
	}
	s := x.truth
	s.walk(x.scratch, x.lie)
	n, err := x.End.Send([][]byte{x.scratch})
	for rest := n; rest > 0 && len(batch) > 0; batch = batch[1:] {
		b := batch[0][:min(rest, len(batch[0]))]
		rest -= len(b)
		x.truth.walk(b, nil)
	}
	return n, err
}

func (x *falseLengths) lie(s *scan, was byte) byte {
	t := wire.PacketType(s.kind)
	if t.HasData() || !x.only(t) || !lenField.has(s.at) && !msgLenField.has(s.at) {
		return was
	}
	h := (x.seed ^ s.packets) * 0x9e3779b97f4a7c15
	h ^= h >> 32
	if h&1 == 0 { // as LAM/MPI does
		if s.at == lenField.end()-1 || s.at == msgLenField.end()-1 {
			return headerSize
		}
		return 0
	}
	return byte(h >> (8 * (uint(s.at) % 8)))
}

type field struct{ at, size int }

func (f field) end() int        { return f.at + f.size }
func (f field) has(at int) bool { return at >= f.at && at < f.end() }

const headerSize = 128

var (
	typeField   = field{0, 4}
	lenField    = field{4, 4}
	msgLenField = field{72, 8}
)

type scan struct {
	at      int    // offset in the header
	kind    uint32 // pk_type, as far as it was read
	length  uint32 // pk_len, as far as it was read
	data    int    // bytes of data before the next header
	packets uint64 // number of complete packets before this one
}

// walk follows b. If change is not nil, it returns the new value of each byte of a header.
func (s *scan) walk(b []byte, change func(*scan, byte) byte) {
	for i := 0; i < len(b); {
		if s.data > 0 {
			n := min(s.data, len(b)-i)
			i, s.data = i+n, s.data-n
			continue
		}
		was := b[i]
		switch {
		case typeField.has(s.at):
			s.kind = s.kind<<8 | uint32(was)
		case lenField.has(s.at):
			s.length = s.length<<8 | uint32(was)
		}
		if change != nil {
			b[i] = change(s, was)
		}
		i++
		if s.at++; s.at == headerSize {
			if wire.PacketType(s.kind).HasData() {
				s.data = int(s.length)
			}
			s.at, s.kind, s.length, s.packets = 0, 0, 0, s.packets+1
		}
	}
}
