package file

import (
	"errors"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/fileview"
)

// round is one round of an exchange: begin begins its messages, as far as they do not depend on the
// file, and end does the rest. The messages of a round begin before the round before ends, so that
// they are on their way while an aggregator reads or writes.
type round struct {
	x     *exchange
	n     int64
	sends []proc.Request
	parts []part  // of this member's data, which aggregators read
	stage *buffer // of data of others, at an aggregator
	froms []from
	ahead chan window // reading: the aggregator's window, once it is read
}

// window is what was read of an aggregator's window; n is how many bytes of it the file has.
type window struct {
	b   *buffer
	n   int64
	err error
}

// part is the piece of the member's memory that an aggregator fills.
type part struct {
	q      proc.Request
	at, to int64
}

type from struct {
	q    proc.Request
	rank int
	data []byte
}

// window returns the part of the file that an aggregator has in the round. Windows begin where
// stripes or pages do, if these fit into the buffer.
func (r *round) window(aggregator int) (lo, hi int64) {
	x := r.x
	at := x.start(aggregator) + r.n*x.buffer
	return max(at, x.ends[aggregator]), min(at+x.buffer, x.ends[aggregator+1])
}

func (r *round) begin() error {
	x := r.x
	for i, rank := range x.f.chosen {
		lo, hi := r.window(i)
		if lo >= hi || rank == x.f.comm.Rank() {
			continue
		}
		at, to := x.l.Before(lo), x.l.Before(hi)
		if at == to {
			continue
		}
		if x.write {
			q, err := x.f.comm.IsendElements(proc.ByIsend, message.Standard, x.mem[at:to], datatype.Byte, rank, tagData)
			if err != nil {
				return err
			}
			r.sends = append(r.sends, q)
			continue
		}
		q, err := x.f.comm.IrecvElements(proc.ByIrecv, x.mem[at:to], datatype.Byte, rank, tagData)
		if err != nil {
			return err
		}
		r.parts = append(r.parts, part{q, at, to})
	}
	if x.mine < 0 {
		return nil
	}
	lo, hi := r.window(x.mine)
	if lo >= hi {
		return nil
	}
	if !x.write {
		r.ahead = make(chan window, 1)
		x.f.under.Go(func() {
			w := window{b: buffers.get(hi - lo)}
			w.n, w.err = x.read(w.b.b, lo)
			r.ahead <- w
		})
	}
	return r.prepare(lo, hi)
}

// prepare makes room for the data of others at an aggregator, and begins to receive them.
func (r *round) prepare(lo, hi int64) error {
	x := r.x
	var total int64
	for rank := range x.lists {
		if rank == x.f.comm.Rank() {
			continue
		}
		if n := x.lists[rank].Before(hi) - x.lists[rank].Before(lo); n > 0 {
			r.froms = append(r.froms, from{rank: rank})
			total += n
		}
	}
	r.stage = buffers.get(total)
	rest := r.stage.b
	for i := range r.froms {
		m := &r.froms[i]
		n := x.lists[m.rank].Before(hi) - x.lists[m.rank].Before(lo)
		m.data, rest = rest[:n:n], rest[n:]
		if !x.write {
			continue
		}
		var err error
		if m.q, err = x.f.comm.IrecvElements(proc.ByIrecv, m.data, datatype.Byte, m.rank, tagData); err != nil {
			return err
		}
	}
	return nil
}

func (r *round) end() error {
	x := r.x
	if x.mine >= 0 {
		if lo, hi := r.window(x.mine); lo < hi {
			err := r.aggregate(lo, hi)
			if err != nil {
				return err
			}
		}
	}
	for i := range r.parts {
		st, err := r.parts[i].q.Complete()
		if err != nil {
			return err
		}
		x.got(r.parts[i].at, r.parts[i].to, st.Bytes())
	}
	if err := complete(r.sends); err != nil {
		return err
	}
	if r.stage != nil {
		buffers.put(r.stage)
	}
	return nil
}

// got notes that n bytes came for a part of the member's data. What is missing is behind the end of
// the file, like all that follows.
func (x *exchange) got(at, to, n int64) {
	if n < to-at {
		x.moved = min(x.moved, at+n)
	}
}

func (r *round) aggregate(lo, hi int64) error {
	x := r.x
	me := x.f.comm.Rank()
	at, to := x.l.Before(lo), x.l.Before(hi)
	if !x.write {
		w := <-r.ahead
		defer buffers.put(w.b)
		x.fail(w.err)
		for i := range r.froms {
			m := &r.froms[i]
			k := x.pick(m.rank, m.data, w.b.b[:w.n], lo, hi)
			q, err := x.f.comm.IsendElements(proc.ByIsend, message.Standard, m.data[:k], datatype.Byte, m.rank, tagData)
			if err != nil {
				return err
			}
			r.sends = append(r.sends, q)
		}
		x.got(at, to, x.pick(me, x.mem[at:to], w.b.b[:w.n], lo, hi))
		return nil
	}
	var sources []*fileview.Source
	for i := range r.froms {
		m := &r.froms[i]
		if _, err := m.q.Complete(); err != nil {
			return err
		}
		part := x.lists[m.rank].Between(lo, hi)
		sources = append(sources, &fileview.Source{Cursor: part.Cursor(), Data: m.data})
	}
	if at < to {
		part := x.lists[me].Between(lo, hi)
		sources = append(sources, &fileview.Source{Cursor: part.Cursor(), Data: x.mem[at:to]})
	}
	if len(sources) == 0 {
		return nil
	}
	b := buffers.get(hi - lo)
	holes := fileview.Fill(b.b, lo, sources, nil)
	x.written()
	x.storing = make(chan error, 1)
	x.f.under.Add(1)
	go func(done chan error) {
		defer x.f.under.Done()
		err := x.store(b.b, lo, holes)
		buffers.put(b)
		done <- err
	}(x.storing)
	return nil
}

func (x *exchange) written() {
	if x.storing != nil {
		x.fail(<-x.storing)
		x.storing = nil
	}
}

// pick copies a member's data in a window to dst; b is the part of the window that the file has.
func (x *exchange) pick(rank int, dst, b []byte, lo, hi int64) int64 {
	part := x.lists[rank].Between(lo, hi)
	c := part.Cursor()
	return fileview.GatherRuns(dst, b, lo, &c)
}

// fail keeps the first error of the system.
func (x *exchange) fail(err error) {
	if x.err == nil {
		x.err = err
	}
}

// read reads what is wanted of the part of the file that begins at lo into b, and returns how far
// the file goes in it.
func (x *exchange) read(b []byte, lo int64) (n int64, err error) {
	hi := lo + int64(len(b))
	var data, runs int64
	begin, end := hi, lo
	for i := range x.lists {
		part := x.lists[i].Between(lo, hi)
		if part.Len() > 0 {
			data, runs = data+part.Len(), runs+part.Runs()
			begin, end = min(begin, part.First()), max(end, part.End())
		}
	}
	if data == 0 {
		return int64(len(b)), nil
	}
	d := &x.f.disk
	sparse := end-begin > data+runs*d.fs.call && x.f.hints().sieveRead != enable
	err = d.plainly(false, begin, end, func() error {
		if !sparse {
			k, err := d.readAt(b[begin-lo:end-lo], begin)
			n = begin - lo + int64(k)
			return err
		}
		covered := fileview.Union(x.lists, lo, hi)
		for c := covered.Cursor(); c.Len > 0; c.Take(c.Len) {
			k, err := d.readAt(b[c.Off-lo:c.Off-lo+c.Len], c.Off)
			n = c.Off - lo + int64(k)
			if err != nil || int64(k) < c.Len {
				return err
			}
		}
		return nil
	})
	return n, err
}

// store writes b, which is the part of the file that begins at lo, but not what is in holes.
func (x *exchange) store(b []byte, lo int64, holes []fileview.Extent) error {
	begin, end := lo, lo+int64(len(b))
	if len(holes) > 0 && holes[0].Off == begin {
		begin += holes[0].Len
		holes = holes[1:]
	}
	if n := len(holes); n > 0 && holes[n-1].Off+holes[n-1].Len == end {
		end = holes[n-1].Off
		holes = holes[:n-1]
	}
	d := &x.f.disk
	if n := int64(len(holes)); n > 0 && x.fills(end-begin, n) {
		err := d.locked(exclusive, begin, end, func() error {
			old := buffers.get(end - begin)
			defer buffers.put(old)
			k, err := d.readAt(old.b, begin)
			if err != nil {
				return err
			}
			clear(old.b[k:])
			for _, h := range holes {
				copy(b[h.Off-lo:h.Off-lo+h.Len], old.b[h.Off-begin:])
			}
			_, err = d.writeAt(b[begin-lo:end-lo], begin)
			return err
		})
		if !errors.Is(err, errNoLocks) {
			return err
		}
	}
	return d.plainly(true, begin, end, func() error {
		at := begin
		for _, h := range append(holes, fileview.Extent{Off: end}) {
			if _, err := d.writeAt(b[at-lo:h.Off-lo], at); err != nil {
				return err
			}
			at = h.Off + h.Len
		}
		return nil
	})
}

// fills reports whether so many holes in span bytes are better read and written again than left
// out.
func (x *exchange) fills(span, holes int64) bool {
	h, d := x.f.hints(), &x.f.disk
	if h.sieveWrite == disable || d.mode&ModeReadWrite == 0 || d.lockless.Load() {
		return false
	}
	return h.sieveWrite == enable || span+3*d.fs.call < holes*d.fs.call
}
