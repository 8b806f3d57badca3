package wireup

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/wire"
)

// Table is what the procs of a host know of all procs of the job, in memory that they share and
// nobody can change. It is made once for each host. A proc looks up what it needs, and keeps nothing
// for procs that it has nothing to do with.
//
// The memory is a header of tableHeader bytes; a record for each proc, by world rank; the world ranks
// in ascending order of the procs' identities; and names, which records refer to by their index: the
// end of each, counted from the first byte of the first, and then the bytes of all. Numbers are in
// the order of the machine.
type Table struct {
	mem   []byte
	procs int
	names int
	order int // where the ranks by identity begin
	ends  int // where the ends of the names begin
	text  int // where their bytes begin
}

// The layout of a Table.
const (
	tableMagic  = "impiproc"
	tableHeader = 32 // magic, number of procs, number of names, bytes of all names
	tableRecord = 56
	maxTable    = 1 << 20 // procs, and names
	maxNames    = 256 << 20
)

// The fields of a record, by their first byte: the identity as on the wire, 16 bytes and 8.
const (
	atPID        = 16
	atUnexpected = 24
	atClient     = 32
	atNode       = 36
	atMachine    = 40
	atData       = 44
	atPath       = 48
	atFlags      = 49
)

const (
	flagForeign = 1 << iota
	flagReduce
	flagAllows
)

var paths = [...]Path{PathSelf, PathDirect, PathChannel, PathNative}

var order = binary.NativeEndian

// ShareProcs puts a table of procs, by world rank, into a sealed memfd, to be sent with KindWelcome.
// The path and the representation of each are as all procs of a host have them; a proc's path to
// itself is PathSelf, whatever its record says. The caller closes the file.
func ShareProcs(procs []Proc) (*os.File, error) {
	b, err := encodeProcs(procs)
	if err != nil {
		return nil, err
	}
	return sealed("impi-procs", b)
}

func encodeProcs(procs []Proc) ([]byte, error) {
	if len(procs) > maxTable {
		return nil, fmt.Errorf("table of procs: %d, at most %d", len(procs), maxTable)
	}
	names, numbers := []string(nil), make(map[string]uint32)
	number := func(name string) uint32 {
		n, ok := numbers[name]
		if !ok {
			n = uint32(len(names))
			names, numbers[name] = append(names, name), n
		}
		return n
	}
	b := make([]byte, tableHeader+len(procs)*(tableRecord+4))
	ranks := make([]uint32, len(procs))
	for r := range procs {
		x, rec := &procs[r], b[tableHeader+r*tableRecord:][:tableRecord]
		path := slices.Index(paths[:], x.Path)
		if len(x.Host) != atPID || path < 0 {
			return nil, fmt.Errorf("table of procs: rank %d has a host of %d bytes and path %q", r, len(x.Host), x.Path)
		}
		copy(rec, x.Host)
		order.PutUint64(rec[atPID:], uint64(x.PID))
		order.PutUint64(rec[atUnexpected:], uint64(x.Unexpected))
		order.PutUint32(rec[atClient:], uint32(x.Client))
		order.PutUint32(rec[atNode:], uint32(x.Node))
		order.PutUint32(rec[atMachine:], number(x.Machine))
		order.PutUint32(rec[atData:], number(x.Data))
		rec[atPath] = byte(path)
		for i, set := range []bool{x.Foreign, x.ReduceOnPointToPoint, x.Allows} {
			if set {
				rec[atFlags] |= 1 << i
			}
		}
		ranks[r] = uint32(r)
	}
	slices.SortFunc(ranks, func(x, y uint32) int { return compare(procs[x].Identity(), procs[y].Identity()) })
	for i, r := range ranks {
		order.PutUint32(b[tableHeader+len(procs)*tableRecord+4*i:], r)
	}
	size := 0
	for _, name := range names {
		size += len(name)
		b = order.AppendUint32(b, uint32(size))
	}
	for _, name := range names {
		b = append(b, name...)
	}
	copy(b, tableMagic)
	order.PutUint64(b[8:], uint64(len(procs)))
	order.PutUint64(b[16:], uint64(len(names)))
	order.PutUint64(b[24:], uint64(size))
	return b, nil
}

func compare(a, b wire.Proc) int {
	return cmp.Or(bytes.Compare(a.Host[:], b.Host[:]), cmp.Compare(a.PID, b.PID))
}

// OpenProcs maps the table that came with KindWelcome. It takes over the descriptor; the memory is
// never unmapped.
func OpenProcs(fd int) (*Table, error) {
	f := os.NewFile(uintptr(fd), "impi-procs")
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("table of procs: %w", err)
	}
	if st.Size() < tableHeader || st.Size() > maxTable*(tableRecord+8)+maxNames {
		return nil, fmt.Errorf("table of procs of %d bytes: %w", st.Size(), ErrMessage)
	}
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if want := unix.F_SEAL_SHRINK | unix.F_SEAL_WRITE; err != nil || seals&want != want {
		return nil, errors.Join(fmt.Errorf("table of procs: it can be changed, with seals %#x: %w", seals, ErrMessage), err)
	}
	mem, err := unix.Mmap(fd, 0, int(st.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("table of procs: map: %w", err)
	}
	t, err := newTable(mem)
	if err != nil {
		return nil, errors.Join(err, unix.Munmap(mem))
	}
	return t, nil
}

// newTable checks everything in a table that a lookup relies on.
func newTable(mem []byte) (*Table, error) {
	if len(mem) < tableHeader || string(mem[:8]) != tableMagic {
		return nil, fmt.Errorf("table of procs: %d bytes that are none: %w", len(mem), ErrMessage)
	}
	procs, names, size := order.Uint64(mem[8:]), order.Uint64(mem[16:]), order.Uint64(mem[24:])
	if procs < 1 || procs > maxTable || names > 2*maxTable || size > maxNames ||
		uint64(len(mem)) != tableHeader+procs*(tableRecord+4)+names*4+size {
		return nil, fmt.Errorf("table of procs: %d bytes for %d procs and %d names of %d bytes: %w", len(mem), procs, names, size, ErrMessage)
	}
	t := &Table{mem: mem, procs: int(procs), names: int(names), order: tableHeader + int(procs)*tableRecord}
	t.ends = t.order + 4*t.procs
	t.text = t.ends + 4*t.names
	last := uint32(0)
	for i := range t.names {
		end := order.Uint32(mem[t.ends+4*i:])
		if end < last || uint64(end) > size {
			return nil, fmt.Errorf("table of procs: name %d ends at %d of %d, after %d: %w", i, end, size, last, ErrMessage)
		}
		last = end
	}
	for r := range t.procs {
		if err := t.check(r); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// check looks at the record of a rank, and at one of the ranks by identity.
func (t *Table) check(r int) error {
	rec := t.record(r)
	if m, d := order.Uint32(rec[atMachine:]), order.Uint32(rec[atData:]); int(m) >= t.names || int(d) >= t.names ||
		int(rec[atPath]) >= len(paths) || int64(order.Uint64(rec[atUnexpected:])) < 0 {
		return fmt.Errorf("table of procs: rank %d: machine %d, data %d, path %d: %w", r, m, d, rec[atPath], ErrMessage)
	}
	at := order.Uint32(t.mem[t.order+4*r:])
	if int(at) >= t.procs {
		return fmt.Errorf("table of procs: rank %d of %d: %w", at, t.procs, ErrMessage)
	}
	if r > 0 {
		before := t.Identity(int(order.Uint32(t.mem[t.order+4*r-4:])))
		if this := t.Identity(int(at)); compare(before, this) >= 0 {
			return fmt.Errorf("table of procs: %v and %v are one proc, or out of order: %w", before, this, ErrMessage)
		}
	}
	return nil
}

func (t *Table) record(r int) []byte { return t.mem[tableHeader+r*tableRecord:][:tableRecord] }

// name returns one of the names. It is part of the mapped memory.
func (t *Table) name(n uint32) string {
	first, end := uint32(0), order.Uint32(t.mem[t.ends+4*int(n):])
	if n > 0 {
		first = order.Uint32(t.mem[t.ends+4*int(n)-4:])
	}
	if first == end {
		return ""
	}
	return unsafe.String(&t.mem[t.text+int(first)], int(end-first))
}

// Size returns the number of procs.
func (t *Table) Size() int { return t.procs }

// Identity returns a proc's identity on the wire.
func (t *Table) Identity(r int) wire.Proc {
	rec := t.record(r)
	return wire.Proc{Host: wire.HostID(rec[:atPID]), PID: int64(order.Uint64(rec[atPID:]))}
}

// Find returns the world rank of a proc.
func (t *Table) Find(id wire.Proc) (r int, known bool) {
	lo, hi := 0, t.procs
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		r = int(order.Uint32(t.mem[t.order+4*mid:]))
		switch c := compare(t.Identity(r), id); {
		case c == 0:
			return r, true
		case c < 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return 0, false
}

// Data returns a number that is the same for procs of the same Data. It is below twice Size, as machines
// are numbered with it.
func (t *Table) Data(r int) int { return int(order.Uint32(t.record(r)[atData:])) }

// Proc returns what is known of a proc. It allocates nothing: Host is not to be changed.
func (t *Table) Proc(r int) Proc {
	rec := t.record(r)
	flags := rec[atFlags]
	return Proc{
		Host: rec[:atPID:atPID], PID: int64(order.Uint64(rec[atPID:])), Unexpected: int64(order.Uint64(rec[atUnexpected:])),
		Client: wire.ClientRank(order.Uint32(rec[atClient:])), Node: wire.HostRank(order.Uint32(rec[atNode:])),
		Machine: t.name(order.Uint32(rec[atMachine:])), Data: t.name(order.Uint32(rec[atData:])), Path: paths[rec[atPath]],
		Foreign: flags&flagForeign != 0, ReduceOnPointToPoint: flags&flagReduce != 0, Allows: flags&flagAllows != 0,
	}
}
