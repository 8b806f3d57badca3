package file

import (
	"errors"
	"sync"

	"github.com/openimpi/impi/internal/fileview"
)

// A member that reads or writes by itself many small pieces with gaps between them moves the gaps,
// too, as that takes fewer calls (data sieving). It writes the gaps as it has read them: no other
// member may write there meanwhile, so it locks these bytes, and if any view of the file has gaps,
// all members that write lock the bytes that they write, with shared locks.

func (x *access) byItself() (moved int64, err error) {
	v, pos, mem := x.view, x.pos, x.mem
	if x.atomic && v.Step() < int64(len(mem)) {
		l := v.Runs(pos, int64(len(mem))) // one lock must cover all
		return x.locally(&l, mem)
	}
	for len(mem) > 0 && err == nil {
		n := min(v.Step(), int64(len(mem)))
		l := v.Runs(pos, n)
		var k int64
		k, err = x.locally(&l, mem[:n])
		moved += k
		if k < n {
			break // there the file ends
		}
		mem, pos = mem[n:], pos+n
	}
	return moved, err
}

// locally reads or writes mem, the data of the runs of a list. In atomic mode they are locked.
func (x *access) locally(l *fileview.List, mem []byte) (moved int64, err error) {
	if x.Write && !x.atomic && l.Runs() > 1 && l.End()-l.First() > 4*x.h.writeSize && x.f.disk.reaches(l.End()) {
		return x.staggered(l, mem)
	}
	p := x.pieces(l, mem)
	if !x.atomic || l.Len() == 0 {
		err = p.all()
		return p.moved, ofSystem(err)
	}
	how := shared
	if x.Write {
		how = exclusive
	}
	err = x.f.disk.locked(how, l.First(), l.End(), p.all)
	return p.moved, ofSystem(err)
}

// staggered writes the runs of a list, but begins with another part of them than other members: if
// they write at the same time, and their data interleave, they would wait for each other's locks.
// Files that become longer are written from the beginning on, since pages of holes that are read
// before they are written are small ones in the system's cache, and slow to read ever after.
func (x *access) staggered(l *fileview.List, mem []byte) (moved int64, err error) {
	rank, size := int64(x.f.comm.Rank()), int64(x.f.comm.Size())
	middle := l.First() + (l.End()-l.First())/size*rank
	upper, lower := l.Between(middle, l.End()), l.Between(l.First(), middle)
	p := x.pieces(&upper, mem[lower.Len():])
	if err := p.all(); err != nil {
		return 0, ofSystem(err)
	}
	moved = p.moved
	p = x.pieces(&lower, mem[:lower.Len()])
	err = p.all()
	return moved + p.moved, ofSystem(err)
}

func (x *access) pieces(l *fileview.List, mem []byte) pieces {
	return pieces{d: &x.f.disk, l: l, c: l.Cursor(), mem: mem, write: x.Write, held: x.atomic, call: x.f.disk.fs.call, h: x.h}
}

type pieces struct {
	d     *storage
	l     *fileview.List
	c     fileview.Cursor
	mem   []byte // after the bytes that were moved
	moved int64
	write bool
	held  bool // all needed locks are held
	ended bool // at the end of the file
	call  int64
	h     hints
}

// all moves the remaining pieces; a read stops at the end of the file.
func (p *pieces) all() (err error) {
	for p.c.Len > 0 && err == nil && !p.ended {
		err = p.next()
	}
	return err
}

// window returns the end of the next window, which is at most as long as a buffer.
func (p *pieces) window() (hi int64) {
	size := p.h.readSize
	if p.write {
		size = p.h.writeSize
	}
	return min((p.c.Off/size+1)*size, p.l.End()) // so that windows end at page boundaries
}

func (p *pieces) next() error {
	lo, hi := p.c.Off, p.window()
	if lo+p.c.Len >= hi {
		return p.guarded(lo, lo+p.c.Len, func() error { return p.run(p.c.Len) })
	}
	data := p.l.Before(hi) - p.l.Before(lo)
	if p.sieved(hi-lo, data) {
		return p.sieve(lo, hi, data)
	}
	return p.guarded(lo, hi, func() error {
		for p.c.Off < hi && p.c.Len > 0 && !p.ended {
			if err := p.run(min(p.c.Len, hi-p.c.Off)); err != nil {
				return err
			}
		}
		return nil
	})
}

// sieved reports whether a window of span bytes is moved as a whole for the sake of data in it.
func (p *pieces) sieved(span, data int64) bool {
	h := &p.h
	calls := p.l.Runs()*data/p.l.Len() + 1
	if !p.write {
		return h.sieveRead != disable && (h.sieveRead == enable || span < data+calls*p.call)
	}
	if h.sieveWrite == disable || p.d.mode&ModeReadWrite == 0 || p.d.lockless.Load() || span == data {
		return false
	}
	return h.sieveWrite == enable || 2*span+2*p.call < data+calls*p.call
}

func (p *pieces) run(n int64) (err error) {
	var k int
	if p.write {
		k, err = p.d.writeAt(p.mem[:n], p.c.Off)
	} else {
		k, err = p.d.readAt(p.mem[:n], p.c.Off)
		p.ended = int64(k) < n
	}
	p.moved += int64(k)
	p.mem = p.mem[k:]
	p.c.Take(n)
	return err
}

// sieve moves the data bytes of the view that lie between lo and hi by reading this whole part of
// the file, and for a write by writing it back.
func (p *pieces) sieve(lo, hi, data int64) error {
	b := buffers.get(hi - lo)
	defer buffers.put(b)
	if !p.write {
		return p.guarded(lo, hi, func() error {
			n, err := p.d.readAt(b.b, lo)
			k := fileview.GatherRuns(p.mem[:data], b.b[:n], lo, &p.c)
			p.moved += k
			p.mem, p.ended = p.mem[k:], int64(n) < hi-lo
			return err
		})
	}
	part := p.l.Between(lo, hi)
	end := part.End() // the file may end there
	do := func() error {
		n, err := p.d.readAt(b.b[:end-lo], lo)
		if err != nil {
			return err
		}
		clear(b.b[n : end-lo])
		c := p.c
		fileview.ScatterRuns(p.mem[:data], b.b, lo, &c)
		if _, err = p.d.writeAt(b.b[:end-lo], lo); err != nil {
			return err
		}
		p.c, p.mem, p.moved = c, p.mem[data:], p.moved+data
		return nil
	}
	if p.held {
		return do()
	}
	err := p.d.locked(exclusive, lo, hi, do)
	if errors.Is(err, errNoLocks) {
		return nil // the next try moves the runs by themselves
	}
	return err
}

// guarded calls do with the locks that plain accesses need, unless they are held.
func (p *pieces) guarded(lo, hi int64, do func() error) error {
	if p.held {
		return do()
	}
	return p.d.plainly(p.write, lo, hi, do)
}

var buffers pool

type pool struct{ free sync.Pool }

type buffer struct{ b []byte }

// get returns n bytes with arbitrary contents.
func (p *pool) get(n int64) *buffer {
	x, ok := p.free.Get().(*buffer)
	if !ok || int64(cap(x.b)) < n {
		return &buffer{make([]byte, n)}
	}
	x.b = x.b[:n]
	return x
}

func (p *pool) put(b *buffer) { p.free.Put(b) }
