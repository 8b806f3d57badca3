package wireup

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"os"
	"sort"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/wire"
)

// Table is what the procs of a host know of all procs of the job, in memory that they share and
// nobody can change. It is made once for each host. A proc looks up what it needs, and keeps nothing
// for procs that it has nothing to do with.
//
// Its records are of runs: procs in a row of whom the same is known but for their PIDs, which ascend.
// So a job has about one for each host, and opening the table takes as long as there are runs, not
// procs. The i-th of the n PIDs of a run is first + i*span/(n-1), plus an offset where that is not
// exact. Offsets are looked at only when their proc is: whatever they are, a proc's PID is in the
// range of its run, and ranges of runs with one host ID have nothing in common.
//
// The memory is a header of tableHeader bytes; the records, by world rank; the numbers of the runs
// in ascending order of host ID and PID; names, which records refer to by their index: the end of
// each, counted from the first byte of the first, and then the bytes of all; the job's description of
// itself; and the offsets of those runs that have any. Numbers are in the order of the machine.
type Table struct {
	mem     []byte
	procs   int
	runs    int
	names   int
	order   int // where the runs by host ID and PID begin
	ends    int // where the ends of the names begin
	text    int // where their bytes begin
	world   int // where the description begins
	offsets int // where the offsets begin
}

// Run is procs in a row of whom the same is known but for their PIDs.
type Run struct {
	First wire.WorldRank
	N     int
	Proc  Proc // the first one, with the path that all procs of the host have to it
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
	if st.Size() < tableHeader || st.Size() > maxTableBytes {
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
	t, err := layTable(mem)
	if err != nil {
		return nil, err
	}
	last, size := uint32(0), t.world-t.text
	for i := range t.names {
		end := order.Uint32(mem[t.ends+4*i:])
		if end < last || uint64(end) > uint64(size) {
			return nil, fmt.Errorf("table of procs: name %d ends at %d of %d, after %d: %w", i, end, size, last, ErrMessage)
		}
		last = end
	}
	for k := range t.runs {
		if err := t.check(k); err != nil {
			return nil, err
		}
	}
	for i := range t.runs {
		if err := t.checkOrder(i); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// layTable finds the parts of a table.
func layTable(mem []byte) (*Table, error) {
	if len(mem) < tableHeader || string(mem[:8]) != tableMagic {
		return nil, fmt.Errorf("table of procs: %d bytes that are none, or are one of another version: %w", len(mem), ErrMessage)
	}
	var n [6]uint64
	for i := range n {
		n[i] = order.Uint64(mem[8+8*i:])
	}
	procs, runs, names, size, world, offsets := n[0], n[1], n[2], n[3], n[4], n[5]
	if procs < 1 || procs > maxTable || runs < 1 || runs > procs || names > 2*maxTable || size > maxNames || world > maxWorld || offsets > 8*maxTable ||
		uint64(len(mem)) != tableHeader+runs*(tableRecord+4)+names*4+size+world+offsets {
		return nil, fmt.Errorf("table of procs: %d bytes for %d procs in %d runs, %d names of %d bytes, a description of %d, and %d of offsets: %w",
			len(mem), procs, runs, names, size, world, offsets, ErrMessage)
	}
	t := &Table{mem: mem, procs: int(procs), runs: int(runs), names: int(names), order: tableHeader + int(runs)*tableRecord}
	t.ends = t.order + 4*t.runs
	t.text = t.ends + 4*t.names
	t.world = t.text + int(size)
	t.offsets = t.world + int(world)
	return t, nil
}

// check looks at the record of a run, of which those before it are right.
func (t *Table) check(k int) error {
	rec := t.record(k)
	if first, before := t.first(k), t.first(max(0, k-1)); first >= t.procs || k == 0 && first != 0 || k > 0 && first <= before {
		return fmt.Errorf("table of procs: run %d begins with rank %d of %d, after %d: %w", k, first, t.procs, before, ErrMessage)
	}
	if m, d := order.Uint32(rec[atMachine:]), order.Uint32(rec[atData:]); int(m) >= t.names || int(d) >= t.names ||
		int(rec[atPath]) >= len(paths) || int64(order.Uint64(rec[atUnexpected:])) < 0 {
		return fmt.Errorf("table of procs: run %d: machine %d, data %d, path %d: %w", k, m, d, rec[atPath], ErrMessage)
	}
	n := uint64(t.end(k) - t.first(k))
	pid, span := t.pids(k)
	if span > math.MaxInt64 || pid+int64(span) < pid || span < n-1 || n == 1 && span > 0 {
		return fmt.Errorf("table of procs: run %d has %d procs, whose PIDs are %d and %d more: %w", k, n, pid, span, ErrMessage)
	}
	at, width := uint64(order.Uint32(rec[atOffsets:])), uint64(rec[atWidth])
	if width > 8 || width&(width-1) != 0 || at+n*width > uint64(len(t.mem)-t.offsets) {
		return fmt.Errorf("table of procs: run %d has %d offsets of %d bytes at %d of %d: %w", k, n, width, at, len(t.mem)-t.offsets, ErrMessage)
	}
	return nil
}

// checkOrder looks at one of the runs by host ID and PID: it is above the one before it, so each is
// there once, and each PID of a host is in the range of one run.
func (t *Table) checkOrder(i int) error {
	k := order.Uint32(t.mem[t.order+4*i:])
	if int(k) >= t.runs {
		return fmt.Errorf("table of procs: run %d of %d: %w", k, t.runs, ErrMessage)
	}
	if i == 0 {
		return nil
	}
	before, this := t.last(t.ordered(i-1)), t.lowest(int(k))
	if compare(before, this) >= 0 {
		return fmt.Errorf("table of procs: %v and %v are one proc, or out of order: %w", before, this, ErrMessage)
	}
	return nil
}

func (t *Table) record(k int) []byte { return t.mem[tableHeader+k*tableRecord:][:tableRecord] }

func (t *Table) ordered(i int) int { return int(order.Uint32(t.mem[t.order+4*i:])) }

// first returns the first rank of a run.
func (t *Table) first(k int) int { return int(order.Uint32(t.record(k)[atFirst:])) }

// end returns the rank after the last one of a run.
func (t *Table) end(k int) int {
	if k+1 == t.runs {
		return t.procs
	}
	return t.first(k + 1)
}

// pids returns the first PID of a run and how far its last one is above that.
func (t *Table) pids(k int) (first int64, span uint64) {
	rec := t.record(k)
	return int64(order.Uint64(rec[atPID:])), order.Uint64(rec[atSpan:])
}

// lowest and last are the first and the last identity of a run.
func (t *Table) lowest(k int) wire.Proc {
	pid, _ := t.pids(k)
	return wire.Proc{Host: wire.HostID(t.record(k)), PID: pid}
}

func (t *Table) last(k int) wire.Proc {
	pid, span := t.pids(k)
	return wire.Proc{Host: wire.HostID(t.record(k)), PID: pid + int64(span)}
}

// pid returns the PID of the i-th proc of a run.
func (t *Table) pid(k, i int) int64 {
	first, span := t.pids(k)
	rec := t.record(k)
	width := int(rec[atWidth])
	ahead := evenly(i, t.end(k)-t.first(k), span)
	if width > 0 {
		ahead = shift(ahead, offset(t.mem[t.offsets+int(order.Uint32(rec[atOffsets:]))+i*width:], width), span)
	}
	return first + int64(ahead)
}

// evenly returns where the i-th of n PIDs is, counted from the first one, if the last one is span
// above it and all are equally spaced.
func evenly(i, n int, span uint64) uint64 {
	if n == 1 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(i), span)
	at, _ := bits.Div64(hi, lo, uint64(n-1))
	return at
}

// shift adds an offset, within 0 and span.
func shift(at uint64, off int64, span uint64) uint64 {
	if off < 0 {
		return at - min(at, -uint64(off))
	}
	return at + min(span-at, uint64(off))
}

// offset reads an offset of that many bytes.
func offset(b []byte, width int) int64 {
	switch width {
	case 1:
		return int64(int8(b[0]))
	case 2:
		return int64(int16(order.Uint16(b)))
	case 4:
		return int64(int32(order.Uint32(b)))
	}
	return int64(order.Uint64(b))
}

// run returns the run that a rank is in.
func (t *Table) run(r int) int {
	// Most jobs have as many procs on each host.
	if k := int(uint64(r) * uint64(t.runs) / uint64(t.procs)); t.first(k) <= r && r < t.end(k) {
		return k
	}
	return sort.Search(t.runs, func(k int) bool { return t.first(k) > r }) - 1
}

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

// World returns the job's description of itself, an encoded Description of core/dynamic; nil if there is
// none. It is part of the mapped memory.
func (t *Table) World() []byte {
	if t.world == t.offsets {
		return nil
	}
	return t.mem[t.world:t.offsets:t.offsets]
}

// Size returns the number of procs.
func (t *Table) Size() int { return t.procs }

// Identity returns a proc's identity on the wire.
func (t *Table) Identity(r int) wire.Proc {
	k := t.run(r)
	return wire.Proc{Host: wire.HostID(t.record(k)), PID: t.pid(k, r-t.first(k))}
}

// Find returns the world rank of a proc.
func (t *Table) Find(id wire.Proc) (r int, known bool) {
	at := sort.Search(t.runs, func(i int) bool { return compare(t.last(t.ordered(i)), id) >= 0 })
	if at == t.runs {
		return 0, false
	}
	k := t.ordered(at)
	if compare(t.lowest(k), id) > 0 {
		return 0, false
	}
	n := t.end(k) - t.first(k)
	i := sort.Search(n, func(i int) bool { return t.pid(k, i) >= id.PID })
	if i == n || t.pid(k, i) != id.PID {
		return 0, false
	}
	return t.first(k) + i, true
}

func compare(a, b wire.Proc) int {
	return cmp.Or(bytes.Compare(a.Host[:], b.Host[:]), cmp.Compare(a.PID, b.PID))
}

// Data returns a number that is the same for procs of the same Data. It is below twice Size, as machines
// are numbered with it.
func (t *Table) Data(r int) int { return int(order.Uint32(t.record(t.run(r))[atData:])) }

// Proc returns what is known of a proc. It allocates nothing: Host is not to be changed.
func (t *Table) Proc(r int) Proc {
	k := t.run(r)
	p := t.described(k)
	p.PID = t.pid(k, r-t.first(k))
	return p
}

// Runs yields the runs by ascending rank. It allocates nothing for them.
func (t *Table) Runs() iter.Seq[Run] {
	return func(yield func(Run) bool) {
		for k := range t.runs {
			if !yield(Run{First: wire.WorldRank(t.first(k)), N: t.end(k) - t.first(k), Proc: t.described(k)}) {
				return
			}
		}
	}
}

// described returns what is known of the first proc of a run.
func (t *Table) described(k int) Proc {
	rec := t.record(k)
	flags := rec[atFlags]
	return Proc{
		Host: rec[:atPID:atPID], PID: int64(order.Uint64(rec[atPID:])), Unexpected: int64(order.Uint64(rec[atUnexpected:])),
		Client: wire.ClientRank(order.Uint32(rec[atClient:])), Node: wire.HostRank(order.Uint32(rec[atNode:])),
		Machine: t.name(order.Uint32(rec[atMachine:])), Data: t.name(order.Uint32(rec[atData:])), Path: paths[rec[atPath]],
		Foreign: flags&flagForeign != 0, ReduceOnPointToPoint: flags&flagReduce != 0, Allows: flags&flagAllows != 0,
	}
}
