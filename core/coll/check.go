package coll

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/openimpi/impi/core/datatype"
)

// ErrMismatch is wrapped when the members of a communicator do not call the same
// collective operation with the same arguments.
var ErrMismatch = errors.New("members do not call the same collective operation")

// Call is what a member has been asked to do, as far as all must have been asked
// the same.
type Call struct {
	Name  string // of the operation, up to 23 bytes of it count
	Root  int    // NoRoot of operations without one
	Op    string // of a reduction, up to 15 bytes of it count
	Kind  datatype.Kind
	Bytes uint64 // what each member contributes or gets, if that is the same for all
	Bad   bool   // the arguments were found wrong
}

// NoRoot is the Root of a Call without one.
const NoRoot = -1 << 31

// A record is a Call and whose it is: name, op, root, rank, bytes, kind, bad. What
// travels are two of them, of which the second counts if it differs.
const (
	nameLen    = 24
	opLen      = 16
	recordLen  = nameLen + opLen + 4 + 4 + 8 + 2
	verdictLen = 2*recordLen + 1

	rankAt  = nameLen + opLen + 4
	differs = 2 * recordLen
)

// record writes the call of a rank.
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

// alike reports whether two records are of the same call.
func alike(a, b []byte) bool {
	return bytes.Equal(a[:rankAt], b[:rankAt]) && bytes.Equal(a[rankAt+4:recordLen], b[rankAt+4:recordLen])
}

// describe says in words what a record has.
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

// compared is the operation that compares verdicts.
var compared = datatype.NewWholeOp(func(in, inout []byte, n int, _ datatype.Kind) {
	if n < verdictLen {
		return // a part of none
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

// CheckLen is how many bytes Check needs to come to a verdict.
const CheckLen = 2 * verdictLen

// Check compares what the members have been asked to do. It is the same for every
// call. Judge tells the verdict from the memory, which has CheckLen bytes.
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

// Judge is ErrMismatch if the members do not do the same. Of the groups of an
// intercommunicator it compares only which operation they call.
func (p *Planner) Judge(memory []byte) error {
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
