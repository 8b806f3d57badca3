package job

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/internal/sim/kernel"
)

// Resume says that direct links, and channels between sites of ours, survive the
// links below them: a node dials again when one is lost. Zero values are defaults.
type Resume struct {
	Window   int           // bytes; 4 KiB
	Checksum bool          // each side decides by chance if it is not set
	Again    time.Duration // most time until a node dials again; 10 ms
	Limit    time.Duration // without a link, until it is given up; 1 s
	Cuts     float64       // how likely the link below is cut when it has brought something
}

func (r *Resume) withDefaults() *Resume {
	c := *r
	if c.Window == 0 {
		c.Window = 4 << 10
	}
	if c.Again == 0 {
		c.Again = 10 * time.Millisecond
	}
	if c.Limit == 0 {
		c.Limit = time.Second
	}
	return &c
}

// ReadWatcher is a watcher that is told what was received on links that are
// resumed, and not only how much: Read is called instead of Received.
type ReadWatcher interface {
	Read(to *kernel.End, data []byte)
}

// end is an end of a link as procs and agents have it.
type end interface {
	link.Link
	// OnReady has f called soon after something may have become possible.
	OnReady(f func())
}

// sever lets go of an end as the death of a process does: nothing more is said.
func sever(e end) {
	if x, ok := e.(*lastingEnd); ok {
		x.die()
		return
	}
	_ = e.Close()
}

// lasting is a link over links that come and go. Observers see shown, on which
// the bytes of the users appear; those below it they do not see.
type lasting struct {
	w       *World
	cfg     *Resume
	shown   *kernel.Link
	watcher kernel.Watcher
	spec    kernel.LinkSpec // of the links below
	places  [2]Endpoint
	session resume.Session
	ends    [2]*lastingEnd // the first dials
}

// lastingEnd is one end, with the part of its node that keeps it going.
type lastingEnd struct {
	*lasting
	me      int
	machine *resume.Link
	gate    *kernel.Gate
	lower   *kernel.End
	dial    *kernel.Timer
	giveUp  *kernel.Timer
	alive   func() bool // tells whether there is a node that dials or accepts
	begun   bool        // its agent has it
	ended   bool
	told    bool // of the peer's end
	closed  bool // by its user
	dead    bool
}

// newLasting makes a link between two places that has no link below it yet.
func (w *World) newLasting(spec kernel.LinkSpec, a, b Endpoint, alive [2]func() bool) *lasting {
	l := &lasting{w: w, cfg: w.cfg.Resume, spec: spec, places: [2]Endpoint{a, b}}
	l.shown = w.k.NewLink(spec, nil)
	if w.cfg.Observer != nil {
		l.watcher = w.cfg.Observer.Link(l.shown, l.places)
	}
	binary.BigEndian.PutUint64(l.session[:], w.k.Rand().Uint64())
	for i := range l.ends {
		e := &lastingEnd{lasting: l, me: i, alive: alive[i]}
		e.gate = w.k.NewGate(e.ready)
		e.machine = resume.New(resume.Config{
			Session: l.session, Dialler: i == 0, Window: l.cfg.Window, Handle: e.gate.Handle(),
			Checksum: l.cfg.Checksum || w.k.Chance(0.3), Frame: 1 + w.k.Rand().IntN(l.cfg.Window),
		})
		l.ends[i] = e
	}
	w.sessions[l.session] = l
	return l
}

// below makes a link to run over.
func (l *lasting) below(w kernel.Watcher) *kernel.Link {
	x := &strand{ends: l.places, shown: l.shown, lasts: true}
	x.l = l.w.k.NewLink(l.spec, w)
	l.w.strands = append(l.w.strands, x)
	return x.l
}

// start goes on over e, the dialler's end of a link below.
func (e *lastingEnd) start(lower *kernel.End) {
	if err := e.machine.Dial(lower); err != nil {
		_ = lower.Close() // it was given up meanwhile
		return
	}
	e.use(lower)
}

func (e *lastingEnd) use(lower *kernel.End) {
	e.lower = lower
	lower.OnReady(e.pump)
	e.update()
	e.gate.Ring()
}

// pump is called when the link below is ready. The user may be quicker to take
// what has come.
func (e *lastingEnd) pump() {
	if e.dead {
		return
	}
	if k := e.w.k; k.Chance(0.5) {
		k.After(k.Between(0, 100*time.Microsecond), e.pumpNow)
		e.gate.Ring()
		return
	}
	e.pumpNow()
}

func (e *lastingEnd) pumpNow() {
	if e.dead {
		return
	}
	for e.machine.Pump() {
	}
	e.update()
	k := e.w.k
	if e.up() && k.Chance(e.cfg.Cuts) {
		k.Note("cut below %s", e.shown.Name())
		e.w.met[CutLink]++
		e.lower.Link().Cut(errors.New("it was cut"))
	}
	if k.Chance(0.3) {
		k.After(k.Between(0, 300*time.Microsecond), e.gate.Ring) // the user is slow
		return
	}
	e.gate.Ring()
}

// update sees to a change of the machine's.
func (e *lastingEnd) update() {
	switch s := e.machine.Status(); s.State {
	case resume.Apart:
		e.lower = nil
		if e.giveUp == nil {
			if s.Err != nil { // else it has none yet
				e.w.k.Note("%s, end %d: lost: %v", e.shown.Name(), e.me, s.Err)
			}
			e.giveUp = e.w.k.After(e.cfg.Limit, func() { e.abandon(errors.New("it could not be resumed")) })
		}
		if e.me == 0 && e.dial == nil {
			e.dial = e.w.k.After(e.w.k.Between(0, e.cfg.Again), e.again)
		}
	case resume.Up:
		if e.giveUp != nil {
			e.giveUp.Stop()
			e.giveUp = nil
		}
	case resume.Failed:
		e.w.cut(e.shown)
		e.stop()
	case resume.Done, resume.Closed:
		e.stop()
	case resume.Joining:
	}
}

// up tells whether both ends have the same link below. The first one is not cut
// before that: who greets with it does not dial again.
func (l *lasting) up() bool {
	return l.ends[0].machine.Status().State == resume.Up && l.ends[1].machine.Status().State == resume.Up
}

// abandon gives the link up.
func (e *lastingEnd) abandon(why error) {
	if !e.dead {
		e.machine.Fail(why)
		e.update()
		e.gate.Ring()
	}
}

func (e *lastingEnd) stop() {
	for _, t := range []**kernel.Timer{&e.giveUp, &e.dial} {
		if *t != nil {
			(*t).Stop()
			*t = nil
		}
	}
}

// again dials.
func (e *lastingEnd) again() {
	e.dial = nil
	if e.dead || e.machine.Status().State != resume.Apart {
		return
	}
	peer := e.ends[1]
	if k := e.w.k; !e.alive() || !peer.alive() || peer.dead || k.Chance(e.w.cfg.DialFail) {
		e.dial = k.After(k.Between(0, e.cfg.Again), e.again)
		return
	}
	e.w.resumed++
	l := e.below(nil)
	e.w.k.After(e.w.k.Between(0, e.spec.Delay), func() { e.w.await(l.Ends[1]) })
	e.start(l.Ends[0])
}

// await reads what the dialler of a link says first, and finds out what it wants
// to go on with.
func (w *World) await(lower *kernel.End) {
	a := &resume.Arrival{}
	lower.OnReady(func() {
		hello, ok, err := a.Read(lower)
		if err != nil {
			_ = lower.Close()
			return
		}
		if !ok {
			return
		}
		lower.OnReady(nil)
		l := w.sessions[hello.Session]
		if l == nil {
			_, _ = lower.Send([][]byte{resume.AppendRefusal(nil)})
			_ = lower.Close()
			return
		}
		l.ends[1].accept(lower, hello)
	})
}

func (e *lastingEnd) accept(lower *kernel.End, hello resume.Hello) {
	if e.dead {
		_ = lower.Close()
		return
	}
	if err := e.machine.Accept(lower, hello); err != nil {
		e.w.k.Note("%s: not resumed: %v", e.shown.Name(), err)
		_ = lower.Close()
		e.update()
		e.gate.Ring()
		return
	}
	e.use(lower)
}

// die is the death of the process that has the end.
func (e *lastingEnd) die() {
	if e.dead {
		return
	}
	e.dead = true
	e.stop()
	e.gate.Close()
	delete(e.w.sessions, e.session)
	if e.lower != nil {
		_ = e.lower.Close()
	}
}

func (e *lastingEnd) ready(want link.Interest) bool {
	return e.machine.Arm(want) || want&link.Readable != 0 && e.lower != nil && e.lower.Ready(link.Readable)
}
