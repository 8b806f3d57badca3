package calls

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// RingSize is the number of calls that may wait to be written. A call that finds no room is left
// out, and counted.
const RingSize = 1 << 14

// Event is a call that has ended. It fills a cache line.
type Event struct {
	number atomic.Uint64 // its place in the order of all, from 1 on, once it is complete
	Begun  int64         // by the clock
	Ended  int64
	Size   int64 // bytes, or -1
	Comm   uint64
	Call   uint32
	Peer   int32 // rank in the communicator, or NoPeer
	Tag    int32 // or NoTag

	// Times is the number of calls of the name. More is the number of following events that belong
	// to the same entry, as other calls of one burst; their times are the same. The flag paused
	// means that something else came between these calls.
	Times, More uint32
	Source      int32 // source of a call that also sends, to Peer; or NoPeer
}

const paused = 1 << 31

func (e *Event) set(w about, times uint32) {
	e.Call, e.Peer, e.Tag, e.Source, e.Size, e.Comm, e.Times = w.call, w.peer, w.tag, w.source, w.size, w.comm, times
}

func (e *Event) about() about { return about{e.Call, e.Peer, e.Tag, e.Source, e.Size, e.Comm} }

// Traced contains the calls that wait to be written. Any thread adds calls, one thread removes
// them; the fields that it changes are in another cache line.
type Traced struct {
	turns   atomic.Uint64 // number of calls so far
	dropped atomic.Uint64
	_       [6]uint64
	taken   atomic.Uint64
	_       [7]uint64
	events  [RingSize]Event
}

// put puts in the events of an entry, unless there is no room. how is paused or 0.
func (r *Traced) put(list []*Event, begun, ended int64, how uint32) {
	n := uint64(len(list))
	for {
		number := r.turns.Load()
		if number+n-r.taken.Load() > RingSize {
			for _, e := range list {
				r.dropped.Add(uint64(e.Times))
			}
			return
		}
		if !r.turns.CompareAndSwap(number, number+n) {
			continue
		}
		for i, from := range list {
			e := &r.events[(number+uint64(i))%RingSize]
			e.set(from.about(), from.Times)
			e.Begun, e.Ended, e.More = begun, ended, uint32(len(list)-1-i)|how
			e.number.Store(number + uint64(i) + 1)
		}
		return
	}
}

// take passes on what is complete. It publishes only now and then that there is room again, since
// after each update the writers have to fetch that word.
func (r *Traced) take(to func(e *Event)) {
	const each = RingSize / 64
	number := r.taken.Load()
	for ; ; number++ {
		if number%each == 0 {
			r.taken.Store(number)
		}
		e := &r.events[number%RingSize]
		if e.number.Load() != number+1 {
			break
		}
		to(e)
	}
	r.taken.Store(number)
}

// pause is the time that calls wait to be written, chunk about the number of bytes written at once,
// and most the maximum size of a file.
const (
	pause = 50 * time.Millisecond
	chunk = 64 << 10
	most  = 1 << 30
)

// TimelineProc is what a timeline calls its proc, and by Comm its communicators.
type TimelineProc struct {
	Rank, Host int    // world rank, and host rank
	World      string // a spawned world; empty: that of the job
	HostName   string // for people
	Comm       func(id uint64) string
}

// Timeline writes calls as trace events of Chrome, which Perfetto reads.
type Timeline struct {
	to      io.Writer
	lines   []byte         // whole lines, not written yet
	texts   map[about]text // of calls that were seen since names may have changed
	at      TimelineProc
	began   instant
	start   int64         // that moment as Unix time, in ns
	scale   float64       // see scale
	scaled  time.Duration // time after began at which scale was found
	written int64
	lost    uint64   // calls that did not fit into the file
	burst   []merged // the first events of an entry that is not complete yet
	stop    chan struct{}
	over    chan struct{}

	// Run counts calls of the proc; nil: none may be counted.
	Run *Run
}

// running is set while a proc has the run. Procs of tests share a process.
var running atomic.Bool

// about is what a line says of a call except for its times. text is its formatted form, before and
// after the times.
type about struct {
	call      uint32
	peer, tag int32
	source    int32
	size      int64
	comm      uint64
}

type text struct{ head, tail string }

type merged struct {
	about
	times uint32
}

// mostTexts bounds the texts that are kept, about 200 bytes each.
const mostTexts = 4096

// Trace writes all calls from now on to w, until Close; short ones are merged unless each is set. w
// is a List, or writes to one: it gets whole lines, without the end of the list.
func Trace(w io.Writer, at TimelineProc, each bool) *Timeline {
	t := &Timeline{to: w, at: at, texts: make(map[about]text), stop: make(chan struct{}), over: make(chan struct{})}
	host, rank := fmt.Sprintf("host %d: %s", at.Host, at.HostName), fmt.Sprintf("rank %d", at.Rank)
	if at.World != "" {
		host, rank = at.World+", "+host, rank+" of "+at.World
		t.at.Host = hostOfWorld(at.World, at.Host)
	}
	for _, m := range []struct{ what, name string }{{"process_name", host}, {"thread_name", rank}} {
		sep := ","
		if m.what == "process_name" {
			sep = "["
		}
		t.print(`%s{"ph":"M","name":%q,"pid":%d,"tid":%d,"args":{"name":%s}}`+"\n", sep, m.what, t.at.Host, at.Rank, quoted(m.name))
	}
	if each {
		enable(TraceBit)
	} else {
		enable(TraceBit | MergeBit)
	}
	t.began = thisInstant()
	t.start, t.scale = t.began.at.UnixNano(), 1
	if !each && running.CompareAndSwap(false, true) {
		t.Run = &mem.Burst.run
	}
	go t.run()
	return t
}

// hostOfWorld numbers a host of a spawned world apart from those of the job and, but by chance, of
// other worlds, so that files of several can be put together.
func hostOfWorld(world string, host int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(world)) // never fails
	return int(h.Sum32()&0x7fff|1)<<16 | host&0xffff
}

func (t *Timeline) run() {
	defer close(t.over)
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if mem.Brief != 0 {
				mem.idle(now(), false)
			}
			t.drain()
			t.flush()
		case <-t.stop:
			return
		}
	}
}

// Close writes the remaining calls, and the end of the list.
func (t *Timeline) Close() {
	close(t.stop)
	<-t.over
	if t.Run != nil {
		running.Store(false)
	}
	if mem.Brief != 0 {
		mem.idle(now(), true)
	}
	t.drain()
	if n := mem.Traced.dropped.Load() + t.lost; n > 0 {
		t.print(`,{"ph":"i","s":"t","name":"%d calls are not shown","pid":%d,"tid":%d,"ts":%s}`+"\n", n, t.at.Host, t.at.Rank, t.micros(now()))
	}
	t.flush()
}

// drain writes lines for the calls that wait.
func (t *Timeline) drain() {
	t.adjust()
	clear(t.texts) // names of communicators may change
	mem.Traced.take(t.write)
}

// adjust measures how long a tick is, again whenever an eighth more time has passed: the longer,
// the more precise. Each time all later times can shift by the error of the previous measurement.
func (t *Timeline) adjust() {
	if clock.ticks {
		t.adjustAt(thisInstant())
	}
}

// adjustAt is adjust at a moment. If the counter has jumped, as when a virtual machine was moved to
// another host, later times go on from there at the rate that was known.
func (t *Timeline) adjustAt(i instant) {
	const most = time.Millisecond
	elapsed := i.at.Sub(t.began.at)
	off := time.Duration(float64(i.ticks-t.began.ticks)*t.scale) - elapsed
	switch {
	case t.scaled >= longAgo && off.Abs() > most+elapsed/1000:
		t.start += int64(elapsed)
		t.began, t.scaled = i, longAgo
	case elapsed > t.scaled+t.scaled/8:
		t.scale, t.scaled = t.began.rateUntil(i), elapsed
	}
}

func (t *Timeline) flush() {
	if len(t.lines) > 0 {
		_, _ = t.to.Write(t.lines) // the owner of the List gets its errors
		t.lines = t.lines[:0]
	}
}

func (t *Timeline) print(format string, args ...any) {
	before := len(t.lines)
	t.lines = fmt.Appendf(t.lines, format, args...)
	t.written += int64(len(t.lines) - before)
}

// write adds a line about a call, or about a burst once all of it is there.
func (t *Timeline) write(e *Event) {
	if e.Call >= uint32(count) || t.written > most {
		t.lost += uint64(e.Times)
		t.burst = t.burst[:0]
		return
	}
	if e.More > 0 || e.Times > 1 || len(t.burst) > 0 {
		if t.burst = append(t.burst, merged{e.about(), e.Times}); e.More&^paused == 0 {
			t.writeBurst(e.Begun, e.Ended, e.More != 0)
			t.burst = t.burst[:0]
		}
		return
	}
	x := t.text(e.about(), t.textOf)
	b := t.appendTimes(append(t.lines, x.head...), e.Begun, e.Ended)
	t.wrote(append(b, x.tail...))
}

// text returns the formatted form of a call. It runs on the program's core, so nothing is formatted
// twice.
func (t *Timeline) text(what about, format func(about) text) text {
	x, known := t.texts[what]
	if !known {
		if len(t.texts) >= mostTexts {
			clear(t.texts)
		}
		x = format(what)
		t.texts[what] = x
	}
	return x
}

func (t *Timeline) appendTimes(b []byte, begun, ended int64) []byte {
	b = appendFraction(b, t.unix(begun))
	return appendFraction(append(b, `,"dur":`...), int64(float64(max(ended-begun, 0))*t.scale))
}

// wrote replaces t.lines by b, to which a line was added.
func (t *Timeline) wrote(b []byte) {
	t.written += int64(len(b) - len(t.lines))
	if t.lines = b; len(b) >= chunk {
		t.flush()
	}
}

// These take the place of sizes in the keys of texts about bursts, which have no size.
const (
	ofBurst  = -2 - iota // calls of a name
	ofShort              // the burst itself
	ofPaused             // a burst with a pause
)

func (t *Timeline) writeBurst(begun, ended int64, pause bool) {
	calls := uint64(0)
	for _, m := range t.burst {
		calls += uint64(m.times)
	}
	head := about{size: ofShort}
	if pause {
		head.size = ofPaused
	}
	b := t.appendTimes(append(t.lines, t.text(head, t.burstText).head...), begun, ended)
	b = strconv.AppendUint(append(b, `,"args":{"calls":`...), calls, 10)
	for _, m := range t.burst {
		what := m.about
		what.size = ofBurst
		x := t.text(what, t.mergedText)
		b = strconv.AppendUint(append(b, x.head...), uint64(m.times), 10)
		if m.size >= 0 {
			b = strconv.AppendInt(append(b, `,"bytes":`...), m.size, 10)
		}
		b = append(b, x.tail...)
	}
	t.wrote(append(b, "}}\n"...))
}

func (t *Timeline) burstText(w about) text {
	name := "short calls"
	if w.size == ofPaused {
		name = "short calls with a pause"
	}
	return text{head: fmt.Sprintf(`,{"ph":"X","name":%q,"cat":"short","pid":%d,"tid":%d,"ts":`, name, t.at.Host, t.at.Rank)}
}

func (t *Timeline) mergedText(w about) text {
	tail := "}"
	if args := t.args(w); args != "" {
		tail = "," + args + "}"
	}
	return text{head: fmt.Sprintf(`,%q:{"calls":`, Number(w.call).String()), tail: tail}
}

func (t *Timeline) textOf(w about) text {
	n := Number(w.call)
	head := fmt.Sprintf(`,{"ph":"X","name":%q,"cat":%q,"pid":%d,"tid":%d,"ts":`, n.String(), n.Class(), t.at.Host, t.at.Rank)
	return text{head, `,"args":{` + t.args(w) + "}}\n"}
}

func (t *Timeline) args(w about) string {
	var args []string
	arg := func(name string, value int64) { args = append(args, fmt.Sprintf("%q:%d", name, value)) }
	if w.peer != NoPeer {
		arg("peer", int64(w.peer))
	}
	if w.tag != NoTag {
		arg("tag", int64(w.tag))
	}
	if w.source != NoPeer {
		arg("source", int64(w.source))
	}
	if w.size >= 0 {
		arg("bytes", w.size)
	}
	comm := w.comm
	if context != nil {
		comm = context(comm)
	}
	if comm > 0 {
		args = append(args, `"comm":`+quoted(t.at.Comm(comm-1)))
	}
	return strings.Join(args, ",")
}

// unix is a time of the clock as Unix time, in ns.
func (t *Timeline) unix(when int64) int64 {
	return t.start + int64(float64(when-t.began.ticks)*t.scale)
}

func (t *Timeline) micros(when int64) string {
	return string(appendFraction(nil, t.unix(when)))
}

func quoted(s string) string {
	b, _ := json.Marshal(s) // a string
	return string(b)
}

// appendFraction appends nanoseconds as a number of microseconds.
func appendFraction(b []byte, ns int64) []byte {
	b = strconv.AppendInt(b, ns/1000, 10)
	rest := ns % 1000
	return append(b, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
}
