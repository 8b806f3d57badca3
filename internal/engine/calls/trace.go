package calls

import (
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
	lines   []byte            // not written yet: whole ones
	heads   [count]string     // how lines about calls begin
	comms   map[uint64]string // how communicators are called at present
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
	t := &Timeline{to: w, at: at, comms: make(map[uint64]string), stop: make(chan struct{}), over: make(chan struct{})}
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
	if len(t.lines) > 0 {
		_, _ = t.to.Write(t.lines) // who gave it hears of failures
		t.lines = t.lines[:0]
	}
	clear(t.comms) // names change
}

func (t *Timeline) print(format string, args ...any) {
	before := len(t.lines)
	t.lines = fmt.Appendf(t.lines, format, args...)
	t.written += int64(len(t.lines) - before)
}

// write adds a line about a call. It takes its core from the program, so nothing is formatted twice.
func (t *Timeline) write(e *Event) {
	if e.Call >= uint32(count) || t.written > most {
		t.lost++
		return
	}
	n := Number(e.Call)
	if t.heads[n] == "" {
		t.heads[n] = fmt.Sprintf(`,{"ph":"X","name":%q,"cat":%q,"pid":%d,"tid":%d,"ts":`, n.String(), n.Class(), t.at.Host, t.at.Rank)
	}
	b := appendFraction(append(t.lines, t.heads[n]...), e.Begun+t.offset)
	b = appendFraction(append(b, `,"dur":`...), e.Ended-e.Begun)
	b = append(b, `,"args":{`...)
	arg := func(name string, value int64) { b = append(strconv.AppendInt(append(b, name...), value, 10), ',') }
	if e.Peer != Nobody {
		arg(`"peer":`, int64(e.Peer))
	}
	if e.Tag != NoTag {
		arg(`"tag":`, int64(e.Tag))
	}
	if e.Size >= 0 {
		arg(`"bytes":`, e.Size)
	}
	b = append(b, t.commOf(e.Comm)...)
	if last := len(b) - 1; b[last] == ',' {
		b = b[:last]
	}
	b = append(b, "}}\n"...)
	t.written += int64(len(b) - len(t.lines))
	if t.lines = b; len(b) >= chunk {
		t.flush()
	}
}

// commOf is what is written of a communicator; nothing if there is none.
func (t *Timeline) commOf(noted uint64) string {
	text, known := t.comms[noted]
	if known {
		return text
	}
	comm := noted
	if context != nil {
		comm = context(comm)
	}
	if comm > 0 {
		text = `"comm":` + quoted(t.at.Comm(comm-1))
	}
	t.comms[noted] = text
	return text
}

func (t *Timeline) micros(clock int64) string {
	return string(appendFraction(nil, clock+t.offset))
}

// quoted is a text as JSON.
func quoted(s string) string {
	b, _ := json.Marshal(s) // a string
	return string(b)
}

// appendFraction adds a number of nanoseconds as one of microseconds.
func appendFraction(b []byte, ns int64) []byte {
	b = strconv.AppendInt(b, ns/1000, 10)
	rest := ns % 1000
	return append(b, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
}
