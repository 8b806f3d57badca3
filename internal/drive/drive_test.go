package drive

import (
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/poll"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/link/linktest"
)

// loopOwner is a machine whose time moves when the test says so, and the owner of a driver.
type loopOwner struct {
	t      *testing.T
	d      *Driver
	now    time.Time
	set    *set
	timer  *alarm
	events []uint32 // that were no endpoint's
}

func newLoopOwner(t *testing.T) *loopOwner {
	x := &loopOwner{t: t, now: time.Unix(1000, 0), set: &set{wants: map[int]link.Interest{}, keys: map[int]uint32{}}}
	var err error
	if x.d, err = New(x, x); err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *loopOwner) NewSet() (machine.Set, error) { return x.set, nil }
func (x *loopOwner) Now() time.Time               { return x.now }
func (x *loopOwner) AfterFunc(d time.Duration, f func()) machine.Timer {
	x.timer = &alarm{x: x, f: f}
	return x.timer
}
func (x *loopOwner) Event(key uint32) bool { x.events = append(x.events, key); return true }
func (x *loopOwner) SetFailed(err error)   { x.t.Errorf("the set has failed: %v", err) }
func (x *loopOwner) TimerFired()           { x.d.OnTimer(true) }

// pass has time go by, and the timer come as often as it is set to.
func (x *loopOwner) pass(d time.Duration) {
	for end := x.now.Add(d); ; {
		if x.timer == nil || !x.timer.on || x.timer.at.After(end) {
			x.now = end
			return
		}
		x.now, x.timer.on = x.timer.at, false
		x.timer.f()
	}
}

// alarm is a timer of a loopOwner's.
type alarm struct {
	x  *loopOwner
	f  func()
	at time.Time
	on bool
}

func (a *alarm) Reset(d time.Duration) bool { a.at, a.on = a.x.now.Add(d), true; return true }
func (a *alarm) Stop() bool                 { a.on = false; return true }

// loud is the lowest handle of which the set says at all times that it can be read.
const loud = 1000

// set is a poll set that is asked what is ready by the test's links.
type set struct {
	wants map[int]link.Interest
	keys  map[int]uint32
	ready []*source
	woken bool
	waits int
}

func (s *set) Add(h int, key uint32, want link.Interest) error {
	if _, ok := s.wants[h]; ok {
		return errors.New("it is in the set")
	}
	s.wants[h], s.keys[h] = want, key
	return nil
}

func (s *set) Modify(h int, key uint32, want link.Interest) error {
	if _, ok := s.wants[h]; !ok {
		return errors.New("it is not in the set")
	}
	s.wants[h], s.keys[h] = want, key
	return nil
}

func (s *set) Remove(h int) error {
	if _, ok := s.wants[h]; !ok {
		return errors.New("it is not in the set")
	}
	delete(s.wants, h)
	return nil
}

func (s *set) Wait(time.Duration) (events []poll.Event, _ error) {
	s.waits++
	if s.woken {
		events = append(events, poll.Event{Key: machine.WakeKey})
	}
	for h, key := range s.keys {
		if s.wants[h]&link.Readable != 0 && h >= loud {
			events = append(events, poll.Event{Key: key, Readable: true})
		}
	}
	for _, l := range s.ready {
		want, ok := s.wants[l.handle]
		ev := poll.Event{Key: s.keys[l.handle], Readable: want&link.Readable != 0 && l.come > 0, Writable: want&link.Writable != 0 && l.room > 0}
		if ok && (ev.Readable || ev.Writable) {
			events = append(events, ev)
		}
	}
	return events, nil
}

func (s *set) Wake()        { s.woken = true }
func (s *set) Clear()       { s.woken = false }
func (s *set) Close() error { return nil }

// source is a link with bytes to come and room for others, and what moves them.
type source struct {
	Endpoint
	d      *Driver
	handle int
	memory bool
	come   int // receives that bring something
	room   int // sends that are taken
	due    int // of them
	reads  int
	ends   error // after come
	drops  []error
}

func (x *loopOwner) add(memory bool) *source {
	l := &source{d: x.d, handle: 10 + len(x.set.ready), memory: memory}
	l.Link = l
	x.set.ready = append(x.set.ready, l)
	if err := x.d.Add(&l.Endpoint, uint32(len(x.set.ready)-1), l); err != nil {
		x.t.Fatal(err)
	}
	return l
}

func (l *source) Receive() bool {
	if l.reads++; l.come == 0 {
		if l.ends != nil {
			l.Drop(l.ends)
			return true
		}
		return false
	}
	l.come--
	return true
}

func (l *source) Flush() bool {
	n := min(l.due, l.room)
	l.due, l.room = l.due-n, l.room-n
	if l.Full = l.due > 0; l.Full {
		l.d.Await(&l.Endpoint, link.Readable|link.Writable)
	}
	return n > 0
}

func (l *source) Due() bool                  { return l.due > 0 }
func (l *source) Drop(cause error)           { l.drops = append(l.drops, cause); l.d.Remove(&l.Endpoint) }
func (l *source) Send([][]byte) (int, error) { return 0, nil }
func (l *source) Recv([][]byte) (int, error) { return 0, nil }
func (l *source) Handle() int                { return l.handle }
func (l *source) Arm(link.Interest) bool     { return l.memory && l.come > 0 }
func (l *source) Limits() link.Limits        { return link.Limits{Memory: l.memory} }
func (l *source) CloseSend() error           { return nil }
func (l *source) Close() error               { return nil }

// A busy link leaves the poll set, is polled at each step, and is in the set again before a sleep.
func TestBusyLinkLeavesTheSet(t *testing.T) {
	x := newLoopOwner(t)
	l := x.add(false)
	l.come = 2 * busy
	for range 2*busy - 1 {
		x.d.Step()
	}
	if _, in := x.set.wants[l.handle]; in {
		t.Fatal("it is still in the set")
	}
	x.d.Step()
	if l.come != 0 {
		t.Fatalf("%d are left", l.come)
	}
	if !x.d.ArmAll() || x.set.wants[l.handle] != link.Readable {
		t.Errorf("it is waited for as %v", x.set.wants[l.handle])
	}
}

// One that the set is to tell about does not leave it: nobody else would say that it takes more.
func TestFullLinkStaysInTheSet(t *testing.T) {
	x := newLoopOwner(t)
	l := x.add(false)
	l.come, l.due = 3*busy, 1
	l.Flush()
	for range 2 * busy {
		x.d.Step()
	}
	if got := x.set.wants[l.handle]; got != link.Readable|link.Writable {
		t.Fatalf("it is waited for as %v", got)
	}
	l.room = 1
	for range scanEvery {
		x.d.Step()
	}
	if got, in := x.set.wants[l.handle]; l.due != 0 || in && got != link.Readable {
		t.Errorf("%d to be written, waited for as %v", l.due, got)
	}
}

// Links that are not hot are read in time, however busy the hot ones are.
func TestColdLinksAreSeen(t *testing.T) {
	for _, memory := range []bool{false, true} {
		x := newLoopOwner(t)
		busyOne, cold := x.add(memory), x.add(false)
		busyOne.come = 1 << 20
		for range 100 {
			x.d.Step()
		}
		before := cold.reads
		cold.come = 1
		for range MemoryScanEvery {
			x.d.Step()
		}
		if cold.come != 0 {
			t.Errorf("memory %v: it was not read", memory)
		}
		if cold.reads-before > MemoryScanEvery { // once it has brought something it is hot
			t.Errorf("memory %v: it was read %d times", memory, cold.reads-before)
		}
	}
}

// What is looked at beside links ends a look into memory as soon as it has happened.
func TestBesideLinksInMemory(t *testing.T) {
	x := newLoopOwner(t)
	l := x.add(true)
	x.d.MakeHot(&l.Endpoint)
	x.d.Step() // which also asks the poll set
	looks := 0
	for after := range MemoryPolls {
		x.d.OtherEvent = func() bool { looks++; return looks > after }
		looks = 0
		before := l.reads
		if progress, _ := x.d.Step(); progress || looks != after+1 || l.reads-before > after+2 { // one more read is that of mute links
			t.Errorf("it happens after %d looks: %d looks, %d reads of the link, progress %v", after, looks, l.reads-before, progress)
		}
	}
}

// Of links that cost a system call two are hot, beside any number in memory; one that brings
// nothing for long leaves the hot ones if another is memory.
func TestWhoIsHot(t *testing.T) {
	x := newLoopOwner(t)
	var calls []*source
	for range 4 {
		l := x.add(false)
		l.come = 1
		x.d.MakeHot(&l.Endpoint)
		calls = append(calls, l)
	}
	hot := func(l *source) bool { return slices.Contains(x.d.hot[:], &l.Endpoint) }
	if hot(calls[0]) || hot(calls[1]) || !hot(calls[2]) || !hot(calls[3]) {
		t.Fatalf("%v", x.d.hot)
	}
	shared := x.add(true)
	x.d.MakeHot(&shared.Endpoint)
	if !hot(shared) || !hot(calls[3]) {
		t.Fatalf("%v", x.d.hot)
	}
	for _, l := range calls {
		l.come = 0
	}
	for range stale {
		x.d.Step()
	}
	if hot(calls[2]) || hot(calls[3]) || !hot(shared) {
		t.Errorf("%v", x.d.hot)
	}
	for _, l := range calls {
		if x.set.wants[l.handle] == 0 {
			t.Errorf("link %d is neither hot nor in the set", l.handle)
		}
	}
}

// What a sleep would miss keeps from it: memory that has something, and a link that cannot be
// waited for.
func TestArmSeesWhatIsThere(t *testing.T) {
	x := newLoopOwner(t)
	l := x.add(true)
	if !x.d.ArmAll() {
		t.Fatal("there is nothing")
	}
	l.come = 1
	if x.d.ArmAll() {
		t.Fatal("there is something")
	}
	x.d.Step()
	l.due = 1
	if !x.d.ArmAll() || x.set.wants[l.handle] != link.Readable|link.Writable {
		t.Errorf("it is waited for as %v", x.set.wants[l.handle])
	}
}

// A handle that is ready and brings nothing is no progress, the waker is, and who has ended is not
// touched again.
func TestHandle(t *testing.T) {
	x := newLoopOwner(t)
	l := x.add(true)
	if x.d.Handle([]poll.Event{{Key: 0, Readable: true}}) {
		t.Error("a bell was taken for progress")
	}
	x.d.Wake()
	events, _ := x.d.Wait(0)
	if !x.d.Handle(events) || x.set.woken || !slices.Equal(x.events, []uint32{machine.WakeKey}) {
		t.Errorf("woken %v, events %v", x.set.woken, x.events)
	}
	l.ends = io.EOF
	if !x.d.Handle([]poll.Event{{Key: 0, Readable: true, Writable: true}}) || len(l.drops) != 1 || x.d.Has(&l.Endpoint) {
		t.Errorf("%v", l.drops)
	}
	reads := l.reads
	x.d.Handle([]poll.Event{{Key: 0, Readable: true}})
	x.d.Step()
	if l.reads != reads || len(x.set.wants) != 0 || !x.d.ArmAll() {
		t.Errorf("%d more reads, %v in the set", l.reads-reads, x.set.wants)
	}
}

// linkOwner is who has a link that resumes.
type linkOwner struct {
	asked   []uint64 // epochs
	whys    []error
	deaf    bool // cannot ask
	resumed int
	ended   int
	err     error
}

func (p *linkOwner) Ask(why error, epoch uint64) bool {
	p.asked, p.whys = append(p.asked, epoch), append(p.whys, why)
	return !p.deaf
}
func (p *linkOwner) Resumed()        { p.resumed++ }
func (p *linkOwner) Ended(err error) { p.ended++; p.err = err }

// mover reads a link that resumes, and ends it when its bytes have ended.
type mover struct {
	r    *Resumable
	d    *Driver
	eof  bool
	got  int
	into [64]byte
}

func (m *mover) Receive() bool {
	n, err := m.r.Recv([][]byte{m.into[:]})
	m.got += n
	if err != nil {
		m.Drop(err)
	}
	return n > 0 || err != nil
}
func (m *mover) Flush() bool { return false }
func (m *mover) Due() bool   { return false }
func (m *mover) Drop(err error) {
	m.eof = m.eof || err == io.EOF // links report io.EOF itself
	m.d.Remove(m.r.endpoint)
	_ = m.r.Close()
}

// couple is two ends of a link that resumes, each with a driver; the first dials.
type couple struct {
	t      *testing.T
	owners [2]*loopOwner
	ends   [2]*Resumable
	who    [2]*linkOwner
	moves  [2]*mover
	cable  *linktest.End
	cables int
}

// newCouple has a first link below.
func newCouple(t *testing.T, terms ResumeRules) *couple {
	c := newEnds(t, terms)
	a, b := c.wire()
	c.ends[0].Begin(a)
	c.ends[1].Begin(b)
	c.pass(time.Millisecond)
	return c
}

func newEnds(t *testing.T, terms ResumeRules) *couple {
	c := &couple{t: t}
	for i := range c.ends {
		x, p := newLoopOwner(t), &Endpoint{}
		terms.Dialler = i == 0
		c.owners[i], c.who[i] = x, &linkOwner{}
		c.ends[i] = x.d.NewResumable(p, resume.ResumableID{9}, 1<<10, terms, c.who[i])
		p.Link = c.ends[i]
		c.moves[i] = &mover{r: c.ends[i], d: x.d}
		if err := x.d.Add(p, 0, c.moves[i]); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (c *couple) connect() {
	a, b := c.wire()
	c.ends[0].SetLink(a)
	c.ends[1].SetLink(b)
	c.pass(time.Millisecond)
}

func (c *couple) pass(d time.Duration) {
	const tick = 250 * time.Microsecond
	for ; d > 0; d -= tick {
		for _, x := range c.owners {
			x.pass(min(d, tick))
			x.d.Step()
		}
	}
}
