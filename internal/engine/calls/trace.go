package calls

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
	"time"
)

// Ring is how many calls may wait to be written. A call that finds no room is left out, and counted.
const Ring = 1 << 14

// Event is a call that has ended.
type Event struct {
	turn  atomic.Uint64 // its place in the order of all, from 1 on, once it is complete
	Begun int64         // by the clock of whoever writes it, in ns
	Ended int64
	Size  int64 // bytes, or -1
	Comm  uint64
	Call  uint32
	Peer  int32 // rank in the communicator, or Nobody
	Tag   int32 // or NoTag
	_     uint32
}

// Traced are the calls that wait to be written. Any thread puts some in, one takes them out.
type Traced struct {
	put     atomic.Uint64 // how many there were
	taken   atomic.Uint64
	dropped atomic.Uint64
	events  [Ring]Event
}

// add puts in a call, unless there is no room.
func (r *Traced) add(n Number, begun, ended int64, peer, tag int, size int64, comm uint64) {
	for {
		turn := r.put.Load()
		if turn-r.taken.Load() >= Ring {
			r.dropped.Add(1)
			return
		}
		if !r.put.CompareAndSwap(turn, turn+1) {
			continue
		}
		e := &r.events[turn%Ring]
		e.Begun, e.Ended, e.Size, e.Comm, e.Call, e.Peer, e.Tag = begun, ended, size, comm, uint32(n), int32(peer), int32(tag)
		e.turn.Store(turn + 1)
		return
	}
}

// take passes on what is complete.
func (r *Traced) take(to func(e *Event)) {
	for {
		turn := r.taken.Load()
		e := &r.events[turn%Ring]
		if e.turn.Load() != turn+1 {
			return
		}
		to(e)
		r.taken.Store(turn + 1)
	}
}

// pause is how long calls wait to be written, chunk about how many bytes are written at once, and most
// how large a file becomes.
const (
	pause = 50 * time.Millisecond
	chunk = 64 << 10
	most  = 1 << 30
)

// Place is where a timeline shows the calls of a proc.
type Place struct {
	Rank, Host int    // world rank, and host rank
	HostName   string // for people
	Comm       func(id uint64) string
}

// Timeline writes calls as trace events of Chrome, which Perfetto reads.
type Timeline struct {
	to      io.Writer
	lines   bytes.Buffer // not written yet: whole ones
	at      Place
	offset  int64 // of the calls' clock to Unix time
	written int64
	lost    uint64 // calls that did not fit into the file
	stop    chan struct{}
	over    chan struct{}
}

// Trace has all calls from now on written to w, until Close. w is a List, or writes to one: it gets whole
// lines, without the end of the list.
func Trace(w io.Writer, at Place) *Timeline {
	t := &Timeline{to: w, at: at, stop: make(chan struct{}), over: make(chan struct{})}
	t.offset = time.Now().UnixNano() - now()
	for _, m := range []struct{ what, name string }{
		{"process_name", fmt.Sprintf("host %d: %s", at.Host, at.HostName)}, {"thread_name", fmt.Sprintf("rank %d", at.Rank)},
	} {
		sep := ","
		if m.what == "process_name" {
			sep = "["
		}
		t.print(`%s{"ph":"M","name":%q,"pid":%d,"tid":%d,"args":{"name":%s}}`+"\n", sep, m.what, at.Host, at.Rank, quoted(m.name))
	}
	enable(withTrace)
	go t.run()
	return t
}

func (t *Timeline) run() {
	defer close(t.over)
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			mem.Traced.take(t.write)
			t.flush()
		case <-t.stop:
			return
		}
	}
}

// Close writes what is left, and the end.
func (t *Timeline) Close() {
	close(t.stop)
	<-t.over
	mem.Traced.take(t.write)
	if n := mem.Traced.dropped.Load() + t.lost; n > 0 {
		t.print(`,{"ph":"i","s":"t","name":"%d calls are not shown","pid":%d,"tid":%d,"ts":%s}`+"\n", n, t.at.Host, t.at.Rank, t.micros(now()))
	}
	t.flush()
}

// flush writes what is not written yet.
func (t *Timeline) flush() {
	if t.lines.Len() > 0 {
		_, _ = t.to.Write(t.lines.Bytes()) // who gave it hears of failures
		t.lines.Reset()
	}
}

func (t *Timeline) print(format string, args ...any) {
	n, _ := fmt.Fprintf(&t.lines, format, args...)
	t.written += int64(n)
}

func (t *Timeline) write(e *Event) {
	if e.Call >= uint32(count) || t.written > most {
		t.lost++
		return
	}
	n := Number(e.Call)
	t.print(`,{"ph":"X","name":%q,"cat":%q,"pid":%d,"tid":%d,"ts":%s,"dur":%s,"args":{`, n.String(), n.Class(), t.at.Host, t.at.Rank, t.micros(e.Begun), fraction(e.Ended-e.Begun))
	sep := ""
	arg := func(name string, value string) {
		t.print(`%s"%s":%s`, sep, name, value)
		sep = ","
	}
	if e.Peer != Nobody {
		arg("peer", strconv.Itoa(int(e.Peer)))
	}
	if e.Tag != NoTag {
		arg("tag", strconv.Itoa(int(e.Tag)))
	}
	if e.Size >= 0 {
		arg("bytes", strconv.FormatInt(e.Size, 10))
	}
	comm := e.Comm
	if context != nil {
		comm = context(comm)
	}
	if comm > 0 {
		arg("comm", quoted(t.at.Comm(comm-1)))
	}
	t.print("}}\n")
	if t.lines.Len() >= chunk {
		t.flush()
	}
}

func (t *Timeline) micros(clock int64) string { return fraction(clock + t.offset) }

// quoted is a text as JSON.
func quoted(s string) string {
	b, _ := json.Marshal(s) // a string
	return string(b)
}

// fraction is a number of nanoseconds as one of microseconds.
func fraction(ns int64) string { return fmt.Sprintf("%d.%03d", ns/1000, ns%1000) }
