package coll

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/openimpi/impi/core/datatype"
)

// ErrMismatch is wrapped when the members of a communicator do not call the same collective
// operation with the same arguments, which MPI calls erroneous (MPI-4.1, 6.14).
var ErrMismatch = errors.New("members do not call the same collective operation")

// Call is the part of a member's call in which all members have to agree (MPI-4.1, 6.1).
type Call struct {
	Name  string // of the operation; only the first 23 bytes are compared
	Root  int    // NoRoot for operations without a root
	Op    string // of a reduction; only the first 15 bytes are compared
	Kind  datatype.Kind
	Bytes uint64 // size of each member's contribution or result, for operations in which it is the same for all
	Bad   bool   // this member's own check of its arguments failed
}

// NoRoot is the Root of a Call of an operation without a root.
const NoRoot = -1 << 31

// A record is the wire form of a Call and of the rank that made it: name, op, root, rank, bytes,
// kind, bad. A verdict, which is what messages contain, is two records and a byte that is set if
// they differ.
const (
	nameLen    = 24
	opLen      = 16
	recordLen  = nameLen + opLen + 4 + 4 + 8 + 2
	verdictLen = 2*recordLen + 1

	rankAt  = nameLen + opLen + 4
	differs = 2 * recordLen
)

func (c *Call) record(b []byte, rank int) {
	clear(b[:recordLen])
	copy(b[:nameLen-1], c.Name)
	copy(b[nameLen:nameLen+opLen-1], c.Op)
	binary.BigEndian.PutUint32(b[nameLen+opLen:], uint32(int32(c.Root)))
	binary.BigEndian.PutUint32(b[rankAt:], uint32(rank))
	binary.BigEndian.PutUint64(b[rankAt+4:], c.Bytes)
	b[recordLen-2] = byte(c.Kind)
	if c.Bad {
		b[recordLen-1] = 1
	}
}

// alike reports whether two records are of the same call, whoever made it.
func alike(a, b []byte) bool {
	return bytes.Equal(a[:rankAt], b[:rankAt]) && bytes.Equal(a[rankAt+4:recordLen], b[rankAt+4:recordLen])
}

func describe(b []byte) string {
	text := func(b []byte) string { return strings.TrimRight(string(b), "\x00") }
	s := fmt.Sprintf("rank %d calls %s", binary.BigEndian.Uint32(b[rankAt:]), text(b[:nameLen]))
	if op := text(b[nameLen : nameLen+opLen]); op != "" {
		s += " with " + op
	}
	if root := int32(binary.BigEndian.Uint32(b[nameLen+opLen:])); root != NoRoot {
		s += fmt.Sprintf(", root %d", root)
	}
	if k := datatype.Kind(b[recordLen-2]); k.Valid() {
		s += fmt.Sprintf(", %d bytes of %v", binary.BigEndian.Uint64(b[rankAt+4:]), k)
	}
	if b[recordLen-1] != 0 {
		s += ", with arguments that cannot be"
	}
	return s
}

// compared combines verdicts as the operation of a reduction.
var compared = datatype.NewWholeOp(func(in, inout []byte, n int, _ datatype.Kind) {
	if n < verdictLen {
		return // a part of a vector, without a verdict
	}
	other := bytes.Clone(inout[:verdictLen])
	copy(inout, in[:verdictLen])
	switch {
	case in[differs] != 0:
	case !alike(in, other):
		copy(inout[recordLen:], other[:recordLen])
		inout[differs] = 1
	case other[differs] != 0:
		copy(inout[recordLen:], other[recordLen:])
	}
}, false)

// CheckLen is the size in bytes of the memory that Check needs.
const CheckLen = 2 * verdictLen

// Check plans the comparison of the members' calls, by the same messages for every operation. It
// needs CheckLen bytes of memory, which CompareCalls reads after the schedule has been executed.
func (p *Planner) Check(s *Schedule, c *Call, memory []byte) {
	r := reductions{p.begin(s, datatype.Byte), compared}
	clear(memory[:CheckLen])
	c.record(memory, p.me)
	mine := memory[:verdictLen:verdictLen]
	if p.remote == nil {
		allreductions{r}.allreduce(mine, mine)
		s.finish()
		return
	}
	own := s.scratch.get(verdictLen)
	r.reduce(mine, own, 0)
	s.wait()
	if p.me == 0 {
		s.copy(mine, own)
	}
	r.swap(tagInterCheck, mine, memory[verdictLen:CheckLen])
	r.bcasting().bcast(memory[:CheckLen], 0)
	s.finish()
}

// CompareCalls returns ErrMismatch if the members' calls differ. Between the groups of an
// intercommunicator it compares the name of the operation only.
func (p *Planner) CompareCalls(memory []byte) error {
	own, theirs := memory[:verdictLen], memory[verdictLen:CheckLen]
	for side, v := range [][]byte{own, theirs} {
		if v[differs] != 0 {
			return fmt.Errorf("coll: %w: %s%s, but %s", ErrMismatch, [...]string{"", "in the other group "}[side],
				describe(v), describe(v[recordLen:]))
		}
	}
	if p.remote == nil {
		return nil
	}
	if !bytes.Equal(own[:nameLen], theirs[:nameLen]) || own[recordLen-1] != theirs[recordLen-1] {
		return fmt.Errorf("coll: %w: %s, but in the other group %s", ErrMismatch, describe(own), describe(theirs))
	}
	return nil
}
