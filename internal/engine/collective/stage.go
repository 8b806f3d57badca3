package collective

import (
	"fmt"
	"unsafe"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/internal/engine/proc"
)

// staging converts a collective operation over Buffers to a Call, of native elements of one kind.
// Items that are such elements without gaps are not copied. Others are copied: to elements of their
// kind if all have one, or else packed, in native form among equal machines and in the common
// representation elsewhere.
type staging struct {
	c     *proc.Comm
	call  Call
	typed bool   // call.kind is known
	temps []temp // copies to be unpacked at the end
	err   error  // the first
}

// form says how items of a type are passed to the planner.
type form struct {
	kind datatype.Kind
	rep  datatype.Representation
	unit int // bytes of an item
}

// temp is a copy in place of a receive buffer, to be unpacked at the end.
type temp struct {
	b    proc.Buffer
	rep  datatype.Representation
	mem  []byte
	at   []int // the first item of each block
	size []int // the number of items of each block; nil: one block with all
}

// nothing is a buffer of no bytes that is not nil, since nil means in place.
var nothing = []byte{}

func stage(c *proc.Comm, w operation) staging {
	s := staging{c: c, call: Call{What: w, Kind: datatype.Byte}}
	s.err = c.Usable()
	return s
}

func (s *staging) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

func (s *staging) form(t *proc.Datatype) form {
	if k, ok := t.Homogeneous(); ok {
		return form{k, datatype.Native, int(t.Packed(datatype.Native))}
	}
	rep := datatype.Native
	if !s.c.Process().Data.Homogeneous {
		rep = s.c.Process().Members.Common()
	}
	return form{datatype.Byte, rep, int(t.Packed(rep))}
}

func opaque(k datatype.Kind) bool { return k == datatype.Byte || k == datatype.Packed }

// agree sets the kind of the call's elements, or checks that it is k, the kind of the elements of
// one buffer.
func (s *staging) agree(k datatype.Kind, t *proc.Datatype) {
	known := s.call.Kind
	switch {
	case !s.typed:
		s.call.Kind, s.typed = k, true
	case k == known:
	case (opaque(k) || opaque(known)) && s.c.Process().Data.Homogeneous:
		s.call.Kind = datatype.Byte
	default:
		s.fail(fmt.Errorf("%w: %v where the other buffer has elements of %v", datatype.ErrType, t, known))
	}
}

func (s *staging) ready(b *proc.Buffer) (f form, ok bool) {
	if s.err == nil {
		s.err = b.Check()
	}
	if s.err != nil {
		return f, false
	}
	f = s.form(b.Datatype())
	switch {
	case f.unit == 0:
	case b.Count() > 0:
		s.agree(f.kind, b.Datatype())
	case !s.typed:
		s.call.Kind = f.kind // all members must have one kind, as the items of others may pass through this process
	}
	return f, s.err == nil
}

func (s *staging) send(b proc.Buffer) []byte {
	mem, _, _ := s.memory(b, true)
	return mem
}

// recv returns memory for all items of b. load says that their present values are needed: they are
// operands too, or some of them may stay as they are.
func (s *staging) recv(b proc.Buffer, load bool) []byte {
	mem, rep, copied := s.memory(b, load)
	if copied {
		s.temps = append(s.temps, temp{b: b, rep: rep, mem: mem})
	}
	return mem
}

// memory returns the memory of the items of b or, if that cannot be used as it is, a substitute in
// the representation rep, which has a copy of the items if load is set.
func (s *staging) memory(b proc.Buffer, load bool) (mem []byte, rep datatype.Representation, copied bool) {
	f, ok := s.ready(&b)
	if !ok || b.Count()*f.unit == 0 {
		return nothing, f.rep, false
	}
	if f.rep == datatype.Native {
		if mem, ok := b.Run(); ok {
			return mem, f.rep, false
		}
	}
	mem = aligned(b.Count() * f.unit)
	if load {
		b.Datatype().Encode(f.rep, mem, b.Memory(), b.Count(), 0)
	}
	return mem, f.rep, true
}

// aligned makes n bytes with the alignment of the largest numbers.
func aligned(n int) []byte { return make([]byte, (n+15)&^15)[:n] }

// blocks returns the memory of n blocks of items of b, and their counts and displacements in
// elements. into says that b is a receive buffer.
func (s *staging) blocks(b proc.Buffer, counts, displs []int, n int, into, load bool) (mem []byte, c, d []int) {
	f, ok := s.ready(&b)
	if !ok {
		return nothing, counts, displs
	}
	if err := checkBlocks(&b, counts, displs, n); err != nil {
		s.fail(err)
		return nothing, counts, displs
	}
	each := f.unit / f.kind.Size()
	if disp, ok := b.Datatype().Run(b.Count()); ok && f.rep == datatype.Native && b.Datatype().Contig() && disp == 0 {
		mem, _ = b.Run()
		if mem == nil {
			mem = nothing
		}
		return mem, scaled(counts, each), scaled(displs, each)
	}
	at, total := make([]int, n), 0
	for i, count := range counts {
		at[i] = total
		if displs != nil {
			at[i] = displs[i]
		}
		total += count
	}
	mem = aligned(total * f.unit)
	t := temp{b: b, rep: f.rep, mem: mem, at: at, size: counts}
	if !into || load {
		t.each(func(p unsafe.Pointer, items int, part []byte) { b.Datatype().Encode(f.rep, part, p, items, 0) })
	}
	if into {
		s.temps = append(s.temps, t)
	}
	return mem, scaled(counts, each), nil
}

func scaled(items []int, each int) []int {
	if items == nil || each == 1 {
		return items
	}
	elements := make([]int, len(items))
	for i, n := range items {
		elements[i] = n * each
	}
	return elements
}

func checkBlocks(b *proc.Buffer, counts, displs []int, n int) error {
	if len(counts) != n || displs != nil && len(displs) != n {
		return fmt.Errorf("%w: %d counts and %d displacements for %d ranks", coll.ErrCount, len(counts), len(displs), n)
	}
	next := 0
	for i, count := range counts {
		at := next
		if displs != nil {
			at = displs[i]
		}
		switch {
		case count < 0 || at < 0:
			return fmt.Errorf("%w: %d items at %d for rank %d", coll.ErrCount, count, at, i)
		case count > b.Count() || at > b.Count()-count:
			return fmt.Errorf("%w: %d items end before the %d at %d for rank %d", coll.ErrBuffer, b.Count(), count, at, i)
		}
		next = at + count
	}
	return nil
}

func (t *temp) each(f func(first unsafe.Pointer, items int, part []byte)) {
	if t.size == nil {
		f(t.b.Memory(), t.b.Count(), t.mem)
		return
	}
	unit, extent, rest := int(t.b.Datatype().Packed(t.rep)), t.b.Datatype().Extent(), t.mem
	for i, n := range t.size {
		if n > 0 {
			f(unsafe.Add(t.b.Memory(), int64(t.at[i])*extent), n, rest[:n*unit])
			rest = rest[n*unit:]
		}
	}
}

func (x *collective) settle(temps []temp) {
	if len(temps) == 0 {
		return
	}
	x.after = func() error {
		return x.outside(func() error {
			unpackAll(temps)
			return nil
		})
	}
}

func unpackAll(temps []temp) {
	for i := range temps {
		t := &temps[i]
		t.each(func(p unsafe.Pointer, items int, part []byte) {
			t.b.Datatype().Decode(t.rep, p, items, 0, part, nil)
		})
	}
}

func (x *collective) planStaged(s *staging) error {
	err := s.err
	if err == nil {
		err = s.call.plan(x.planner(), &x.main)
	}
	if err == nil {
		x.settle(s.temps)
	}
	if x.c.Checks() {
		return x.compare(s.call.record(x.c), err)
	}
	return err
}

func (s *staging) run() error {
	if s.err == nil {
		if place := BoardMember(s.c); place != nil {
			if block, ok := fits(place, &s.call); ok {
				err := run(place, &s.call, block)
				if err == nil {
					unpackAll(s.temps)
				}
				return err
			}
		}
	}
	x, err := Begin(s.c)
	if err != nil {
		return err
	}
	if s.err == nil && suits(s.c, &s.call) {
		x.team = teamOf(s.c)
	}
	return x.run(x.planStaged(s))
}

func (s *staging) start(fn string) (proc.Request, error) {
	if s.err == nil {
		if q, ok := startOnBoard(s.c, fn, &s.call, s.temps); ok {
			return q, nil
		}
	}
	x, err := Begin(s.c)
	if err != nil {
		return proc.Request{}, err
	}
	return x.start(fn, x.planStaged(s))
}

// inPlace reports whether b is MPI_IN_PLACE, and sets an error if that is not allowed: on
// intercommunicators (MPI-4.1, 6.2.3).
func (s *staging) inPlace(b *proc.Buffer) bool {
	return b.InPlace() && s.err == nil && !s.c.Inter()
}

// distinct refuses a send and a receive buffer whose items begin at the same byte: one buffer for
// both is MPI_IN_PLACE (MPI-4.1, 6.2.1). The planner finds every overlap, but sees copies of items
// with gaps.
func (s *staging) distinct(send, recv *proc.Buffer) {
	if s.err != nil {
		return
	}
	if at := firstByte(send); at != 0 && at == firstByte(recv) {
		s.fail(fmt.Errorf("%w: send and receive buffers begin at the same byte; for in place pass MPI_IN_PLACE", coll.ErrBuffer))
	}
}

// firstByte returns where the first of the items of b begins; 0 if they have no bytes, or are not
// valid.
func firstByte(b *proc.Buffer) uintptr {
	if b.InPlace() || b.Count() <= 0 || b.Datatype().Check() != nil || b.Datatype().Size() == 0 {
		return 0
	}
	return uintptr(b.Memory()) + uintptr(b.Datatype().TrueLB())
}

// root sets the root of the call, and reports whether it is this proc. other reports whether this
// proc exchanges data with the root: on an intercommunicator, that it is in the group without the
// root.
func (s *staging) root(root int) (is, other bool) {
	s.call.Root = root
	if s.err != nil {
		return false, false
	}
	if s.c.Inter() {
		if root != Root && root != proc.ProcNull && (root < 0 || root >= s.c.Partners().Size()) {
			s.fail(fmt.Errorf("%w: %d, the remote group has %d members", coll.ErrRoot, root, s.c.Partners().Size()))
		}
		return root == Root, root >= 0
	}
	if root < 0 || root >= s.c.Size() {
		s.fail(fmt.Errorf("%w: %d, the communicator has %d members", coll.ErrRoot, root, s.c.Size()))
	}
	return root == s.c.Rank(), true
}

// only sets an error on an intercommunicator, where the function fn does not exist (MPI-4.1,
// 6.2.2).
func (s *staging) only(fn string) {
	if s.err == nil && s.c.Inter() {
		s.fail(fmt.Errorf("%w: %s on an intercommunicator", comm.ErrComm, fn))
	}
}
