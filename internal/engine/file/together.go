package file

import (
	"cmp"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/fileview"
)

// In a collective operation a few members, the aggregators, read and write for all: each has a part
// of the file, its domain, and goes through it in windows of cb_buffer_size bytes. In a round each
// aggregator has one window. Members send it their data for that window, and it writes the data in
// one piece; or it reads the window and sends members the parts that they need. Since the data of a
// member are in the order of the file, its data for a window are one piece of its memory.

type record struct {
	class      int64 // class of its error
	first, end int64 // range of its data
	bytes      int64
	rest       int64 // bytes of data for further steps
	runs       int64
	series     int64
	buffer     int64 // its hints, and properties of the file system; those of rank 0 hold for all
	allowed    choice
	align      int64
	cores      int64 // of the machine; 0: the file is on a server
}

const recordLen = int(unsafe.Sizeof(record{}) / 8)

func (x *access) describe(l *fileview.List, rest int64) record {
	h, fs := &x.h, x.f.disk.fs
	r := record{
		class: int64(proc.ErrorClass(x.bad)), first: l.First(), end: l.End(), bytes: l.Len(), rest: rest, runs: l.Runs(), series: int64(len(l.Series())),
		buffer: h.buffer, allowed: h.readAll, align: fs.block,
	}
	if x.Write {
		r.allowed = h.writeAll
	}
	if h.onlyTogether {
		r.allowed = enable
	}
	if h.stripe > 0 {
		r.align = h.stripe
	}
	if !fs.remote {
		r.cores = int64(runtime.NumCPU())
	}
	return r
}

// together does an access with the other members, and returns how many bytes of this member's were
// moved. An error of one member is an error of all. Where views have very many pieces, it takes
// several steps, each for some of the pieces.
func (x *access) together() (moved int64, err error) {
	c := x.f.comm
	if c.Size() == 1 {
		if x.bad != nil {
			return 0, x.bad
		}
		return x.byItself()
	}
	all, bad := make([]record, c.Size()), x.bad
	v, pos, mem := x.view, x.pos, x.mem
	for more, whole := true, true; more; {
		n := min(v.Step(), int64(len(mem)))
		l := v.Runs(pos, n)
		mine := [1]record{x.describe(&l, int64(len(mem))-n)}
		if failed := collective.Allgather(c, words(mine[:]), words(all)); failed != nil {
			return moved, cmp.Or(bad, failed)
		}
		more = false
		for rank, r := range all {
			if r.class != int64(mpierr.Success) && bad == nil {
				bad = fault(proc.Class(r.class), "rank %d could not take part", rank)
			}
			more = more || r.rest > 0
		}
		if bad != nil {
			return moved, bad
		}
		k, failed, lost := x.step(all, &l, mem[:n])
		if lost != nil {
			return moved, lost
		}
		err = cmp.Or(err, failed)
		if whole {
			moved += k
		}
		whole = whole && k == n
		mem, pos = mem[n:], pos+n
	}
	return moved, x.f.agree(err)
}

// step does one step of together. lost is an error of the communication, which ends the operation.
func (x *access) step(all []record, l *fileview.List, mem []byte) (moved int64, failed, lost error) {
	if x.atomic || !gathers(all, x.Write) { // in atomic mode each member's data are written separately
		moved, failed = x.locally(l, mem)
		return moved, failed, nil
	}
	e := newExchange(x.f, all, l, mem, x.Write)
	lost = e.run()
	return e.moved, ofSystem(e.err), lost
}

// words returns the memory of records as numbers, which Allgather can send.
func words(r []record) []int64 {
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(r))), len(r)*recordLen)
}

// gathers reports whether aggregators do the operation. All members get the same answer.
func gathers(all []record, write bool) bool {
	if all[0].allowed != automatic {
		return all[0].allowed == enable
	}
	var bytes, runs, reached int64
	interleaved, begin := false, int64(-1)
	for _, r := range all {
		if r.bytes == 0 {
			continue
		}
		interleaved = interleaved || r.first < reached
		reached = max(reached, r.end)
		bytes, runs = bytes+r.bytes, runs+r.runs
		if begin < 0 || r.first < begin {
			begin = r.first
		}
	}
	procs, cores := int64(len(all)), all[0].cores
	switch {
	case !interleaved:
		return false
	case cores == 0:
		return true
	case bytes >= runs*largePiece:
		return false
	case !write:
		return procs > 4*cores // each copies its data, and the gaps, from the system's cache
	case bytes < (reached-begin)/4*3:
		return procs > 2*cores // an aggregator would have to read the holes
	}
	return true
}

// largePiece is from how many bytes on it costs more to send a piece to another proc of the machine
// than to have each proc call the system for its own.
const largePiece = 4 << 10

// The tags of messages of an exchange.
const (
	tagRuns = 1
	tagData = 2
)

type exchange struct {
	f      *File
	all    []record
	l      *fileview.List
	mem    []byte
	write  bool
	buffer int64
	ends   []int64 // of the aggregators' domains
	moved  int64   // bytes of the member's data without a gap, from the start
	mine   int     // number of this member as an aggregator, -1: none
	lists  []fileview.List
	err    error // error of the system, at this member

	storing chan error // gets the result of writing the previous window; nil: none is written
}

func newExchange(f *File, all []record, l *fileview.List, mem []byte, write bool) *exchange {
	x := &exchange{f: f, all: all, l: l, mem: mem, write: write, buffer: all[0].buffer, moved: l.Len(), mine: -1}
	lo, hi, some := int64(0), int64(0), false
	for _, r := range all {
		if r.bytes == 0 {
			continue
		}
		if !some || r.first < lo {
			lo = r.first
		}
		hi, some = max(hi, r.end), true
	}
	x.ends = fileview.Domains(lo, hi, len(f.chosen), all[0].align)
	for i, rank := range f.chosen {
		if rank == f.comm.Rank() {
			x.mine = i
		}
	}
	return x
}

// run does all rounds. An error of the system does not end them, since others wait for messages.
func (x *exchange) run() error {
	defer x.written()
	if err := x.tell(); err != nil {
		return err
	}
	var longest int64
	for i := range x.f.chosen {
		longest = max(longest, x.ends[i+1]-x.start(i))
	}
	var ahead *round
	for n := int64(0); n*x.buffer < longest || ahead != nil; n++ {
		r := &round{x: x, n: n}
		if n*x.buffer < longest {
			if err := r.begin(); err != nil {
				return err
			}
		} else {
			r = nil
		}
		if ahead != nil {
			if err := ahead.end(); err != nil {
				return err
			}
		}
		ahead = r
	}
	return nil
}

// start returns where the windows of an aggregator begin: at the stripe or page of its domain's
// begin.
func (x *exchange) start(aggregator int) int64 {
	at := x.ends[aggregator]
	return at - at%x.all[0].align
}

// tell makes known to the aggregators where in their domains each member has data.
func (x *exchange) tell() error {
	var open []proc.Request
	me := x.f.comm.Rank()
	for i, rank := range x.f.chosen {
		part := x.l.Between(x.ends[i], x.ends[i+1])
		if rank == me || !x.concerns(me, i) {
			continue
		}
		s := part.Series()
		b := unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(s))), 4*len(s))
		q, err := x.f.comm.IsendElements(proc.ByIsend, message.Standard, datatype.Bytes(b), datatype.Int64, rank, tagRuns)
		if err != nil {
			return err
		}
		open = append(open, q)
	}
	if x.mine >= 0 {
		if err := x.hear(); err != nil {
			return err
		}
	}
	return complete(open)
}

func (x *exchange) concerns(rank, aggregator int) bool {
	r := &x.all[rank]
	return r.bytes > 0 && r.first < x.ends[aggregator+1] && r.end > x.ends[aggregator]
}

func (x *exchange) hear() error {
	lo, hi := x.ends[x.mine], x.ends[x.mine+1]
	x.lists = make([]fileview.List, len(x.all))
	texts := make([][]fileview.Series, len(x.all))
	open := make([]proc.Request, len(x.all))
	for rank := range x.all {
		if rank == x.f.comm.Rank() {
			x.lists[rank] = x.l.Between(lo, hi)
			continue
		}
		if !x.concerns(rank, x.mine) {
			continue
		}
		texts[rank] = make([]fileview.Series, x.all[rank].series+4) // the first and the last series may be cut, into three each
		b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(texts[rank]))), len(texts[rank])*int(unsafe.Sizeof(fileview.Series{})))
		q, err := x.f.comm.IrecvElements(proc.ByIrecv, b, datatype.Int64, rank, tagRuns)
		if err != nil {
			return err
		}
		open[rank] = q
	}
	for rank := range open {
		if texts[rank] == nil {
			continue
		}
		st, err := open[rank].Complete()
		if err == nil {
			n := st.Bytes() / int64(unsafe.Sizeof(fileview.Series{}))
			x.lists[rank], err = fileview.Parse(texts[rank][:n], lo, hi)
		}
		if err != nil {
			return fmt.Errorf("rank %d: %w", rank, err)
		}
	}
	return nil
}

func complete(open []proc.Request) (err error) {
	for i := range open {
		if _, bad := open[i].Complete(); err == nil {
			err = bad
		}
	}
	return err
}
