package wireup

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"os"
	"slices"

	"github.com/openimpi/impi/core/wire"
)

// The layout of a Table.
const (
	tableMagic    = "impiruns"
	tableHeader   = 56 // magic; the numbers of procs, runs and names; the bytes of all names, of the description, and of offsets
	tableRecord   = 68
	maxTable      = 1 << 20 // procs, and names
	maxNames      = 256 << 20
	maxWorld      = 16 << 20
	maxTableBytes = tableHeader + maxTable*(tableRecord+4+2*4+8) + maxNames + maxWorld
)

// The fields of a record, by their first byte: the host ID as on the wire, the lowest PID and how far
// the highest one is above it, ...
const (
	atPID        = 16
	atSpan       = 24
	atUnexpected = 32
	atClient     = 40
	atNode       = 44
	atMachine    = 48
	atData       = 52
	atFirst      = 56 // rank
	atOffsets    = 60
	atWidth      = 64 // bytes of each offset: 0, 1, 2, 4 or 8
	atPath       = 65
	atFlags      = 66
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
// itself is PathSelf, whatever its record says. world becomes the World of their jobs. The caller
// closes the file.
func ShareProcs(procs iter.Seq[Proc], world []byte) (*os.File, error) {
	b, err := encodeProcs(procs, world)
	if err != nil {
		return nil, err
	}
	return sealed("impi-procs", b)
}

// encodeProcs makes a table, in which the PIDs of runs of one host do not interleave.
func encodeProcs(procs iter.Seq[Proc], world []byte) ([]byte, error) {
	b, err := encodeRuns(procs, world, nil)
	if err != nil {
		return nil, err
	}
	t, err := layTable(b)
	if err != nil {
		return nil, err
	}
	if cuts := t.interleaved(); len(cuts) > 0 {
		all := func(yield func(Proc) bool) {
			for r := 0; r < t.procs && yield(t.Proc(r)); r++ {
			}
		}
		if b, err = encodeRuns(all, world, cuts); err != nil {
			return nil, err
		}
	}
	_, err = newTable(b)
	return b, err
}

// encodeRuns makes a table whose runs are as long as they can be, but begin anew with the ranks of
// cuts.
func encodeRuns(procs iter.Seq[Proc], world []byte, cuts map[int]bool) ([]byte, error) {
	e := runEncoder{numbers: make(map[string]uint32)}
	for p := range procs {
		if err := e.add(p, cuts[e.procs]); err != nil {
			return nil, err
		}
	}
	e.endRun()
	return e.bytes(world)
}

type runEncoder struct {
	procs   int
	runs    int
	records []byte // behind the header
	offsets []byte
	names   []string
	numbers map[string]uint32 // of names

	run  Proc // of which pids are
	pids []int64
}

func (e *runEncoder) add(p Proc, cut bool) error {
	if path := slices.Index(paths[:], p.Path); len(p.Host) != atPID || path < 0 {
		return fmt.Errorf("table of procs: rank %d has a host of %d bytes and path %q", e.procs, len(p.Host), p.Path)
	}
	if e.procs == maxTable {
		return fmt.Errorf("table of procs: more than %d", maxTable)
	}
	n := len(e.pids)
	if n == 0 || cut || p.PID <= e.pids[n-1] || uint64(p.PID)-uint64(e.pids[0]) > math.MaxInt64 || !e.run.alike(&p) {
		e.endRun()
		e.run = p
		e.run.Host = slices.Clone(p.Host)
	}
	e.pids = append(e.pids, p.PID)
	e.procs++
	return nil
}

// alike reports whether the same is known of two procs but for their PIDs.
func (p *Proc) alike(q *Proc) bool {
	return bytes.Equal(p.Host, q.Host) && p.Client == q.Client && p.Node == q.Node && p.Path == q.Path && p.Data == q.Data && p.Machine == q.Machine &&
		p.Foreign == q.Foreign && p.ReduceOnPointToPoint == q.ReduceOnPointToPoint && p.Unexpected == q.Unexpected && p.Allows == q.Allows
}

// endRun makes the record of the procs that were added since the last one.
func (e *runEncoder) endRun() {
	n := len(e.pids)
	if n == 0 {
		return
	}
	x, rec := &e.run, make([]byte, tableRecord)
	first, span := e.pids[0], uint64(e.pids[n-1])-uint64(e.pids[0])
	copy(rec, x.Host)
	order.PutUint64(rec[atPID:], uint64(first))
	order.PutUint64(rec[atSpan:], span)
	order.PutUint64(rec[atUnexpected:], uint64(x.Unexpected))
	order.PutUint32(rec[atClient:], uint32(x.Client))
	order.PutUint32(rec[atNode:], uint32(x.Node))
	order.PutUint32(rec[atMachine:], e.number(x.Machine))
	order.PutUint32(rec[atData:], e.number(x.Data))
	order.PutUint32(rec[atFirst:], uint32(e.procs-n))
	order.PutUint32(rec[atOffsets:], uint32(len(e.offsets)))
	rec[atPath] = byte(slices.Index(paths[:], x.Path))
	for i, set := range []bool{x.Foreign, x.ReduceOnPointToPoint, x.Allows} {
		if set {
			rec[atFlags] |= 1 << i
		}
	}
	least, most := int64(0), int64(0)
	for i, pid := range e.pids {
		e.pids[i] = pid - first - int64(evenly(i, n, span)) // both are below 2^63
		least, most = min(least, e.pids[i]), max(most, e.pids[i])
	}
	width := widthOf(least, most)
	rec[atWidth] = byte(width)
	for _, off := range e.pids {
		e.offsets = appendOffset(e.offsets, width, off)
	}
	e.records, e.pids = append(e.records, rec...), e.pids[:0]
	e.runs++
}

// widthOf returns how many bytes hold all numbers from least to most.
func widthOf(least, most int64) int {
	switch {
	case least == 0 && most == 0:
		return 0
	case least >= math.MinInt8 && most <= math.MaxInt8:
		return 1
	case least >= math.MinInt16 && most <= math.MaxInt16:
		return 2
	case least >= math.MinInt32 && most <= math.MaxInt32:
		return 4
	}
	return 8
}

func appendOffset(b []byte, width int, off int64) []byte {
	switch width {
	case 0:
		return b
	case 1:
		return append(b, byte(off))
	case 2:
		return order.AppendUint16(b, uint16(off))
	case 4:
		return order.AppendUint32(b, uint32(off))
	}
	return order.AppendUint64(b, uint64(off))
}

func (e *runEncoder) number(name string) uint32 {
	n, ok := e.numbers[name]
	if !ok {
		n = uint32(len(e.names))
		e.names, e.numbers[name] = append(e.names, name), n
	}
	return n
}

// bytes puts the parts together, with the runs in order.
func (e *runEncoder) bytes(world []byte) ([]byte, error) {
	b := make([]byte, tableHeader, tableHeader+len(e.records)+4*(e.runs+len(e.names))+len(world)+len(e.offsets))
	b = append(b, e.records...)
	b = append(b, make([]byte, 4*e.runs)...)
	size := 0
	for _, name := range e.names {
		size += len(name)
		b = order.AppendUint32(b, uint32(size))
	}
	for _, name := range e.names {
		b = append(b, name...)
	}
	b = append(append(b, world...), e.offsets...)
	copy(b, tableMagic)
	for i, n := range []int{e.procs, e.runs, len(e.names), size, len(world), len(e.offsets)} {
		order.PutUint64(b[8+8*i:], uint64(n))
	}
	t, err := layTable(b)
	if err != nil {
		return nil, err
	}
	sorted := make([]int, e.runs)
	for k := range sorted {
		sorted[k] = k
	}
	slices.SortFunc(sorted, func(x, y int) int { return compare(t.lowest(x), t.lowest(y)) })
	for i, k := range sorted {
		order.PutUint32(b[t.order+4*i:], uint32(k))
	}
	return b, nil
}

// interleaved returns the ranks with which runs have to begin, so that those of one host ID do not
// interleave. As procs of one site are started one after the other on a host, they do so where there
// are several sites on a host, or where a PID was used that was left over below another one.
func (t *Table) interleaved() map[int]bool {
	type place struct {
		id   wire.Proc
		rank int
	}
	var all []place
	for i := 0; i < t.runs; {
		from, most := i, t.last(t.ordered(i))
		for i++; i < t.runs && compare(t.lowest(t.ordered(i)), most) <= 0; i++ {
			if last := t.last(t.ordered(i)); compare(last, most) > 0 {
				most = last
			}
		}
		if i-from == 1 {
			continue
		}
		for ; from < i; from++ {
			k := t.ordered(from)
			for r := t.first(k); r < t.end(k); r++ {
				all = append(all, place{t.Identity(r), r})
			}
		}
	}
	slices.SortFunc(all, func(x, y place) int { return cmp.Or(compare(x.id, y.id), cmp.Compare(x.rank, y.rank)) })
	cuts := make(map[int]bool)
	for i, x := range all {
		if i > 0 && all[i-1].rank+1 != x.rank {
			cuts[x.rank] = true
		}
	}
	return cuts
}
