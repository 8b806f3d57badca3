package job

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/wireup"
)

// Resume says that direct links, and channels between sites of ours, survive the
// links below them: a node dials again when one is lost. Zero values are defaults.
type Resume struct {
	Window int           // bytes; 4 KiB
	Again  time.Duration // most time until a node dials again; 10 ms
	Limit  time.Duration // without a link, until it is given up; 1 s
	Cuts   float64       // how likely the link below is cut when it has brought something
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

// resumed is a link that procs or switches keep over links that come and go, and how the nodes make
// those. Observers see shown, on which the bytes of the users appear; those below it they do
// not see.
type resumed struct {
	w       *World
	shown   *kernel.Link
	watcher kernel.Watcher
	spec    kernel.LinkSpec // of the links below
	places  [2]Endpoint
	session resume.Session
	ends    [2]resumedEnd // the first dials
	lower   *kernel.Link  // the last one that was made
	told    bool          // the observer knows it
}

// resumedEnd is one end.
type resumedEnd struct {
	take  func(*kernel.End) // gives who has it a further link below
	alive func() bool       // tells whether there is a node that dials or accepts
	gone  func() bool       // tells whether who has it is dead
	link  *watched          // nil before it has one
}

// newResumed makes a link between two places that has no link below it yet.
func (w *World) newResumed(spec kernel.LinkSpec, a, b Endpoint, ends [2]resumedEnd) *resumed {
	x := &resumed{w: w, spec: spec, places: [2]Endpoint{a, b}, ends: ends}
	x.shown = w.k.NewLink(spec, nil)
	binary.BigEndian.PutUint64(x.session[:], w.k.Rand().Uint64())
	w.sessions[x.session] = x
	return x
}

// tell tells the observer of it.
func (x *resumed) tell() {
	if !x.told && x.w.cfg.Observer != nil {
		x.watcher = x.w.cfg.Observer.Link(x.shown, x.places)
	}
	x.told = true
}

// below makes a link to run over.
func (x *resumed) below(w kernel.Watcher) *kernel.Link {
	s := &observedLink{ends: x.places, shown: x.shown, resumes: true}
	s.l = x.w.k.NewLink(x.spec, &cutter{x: x, next: w})
	x.w.strands = append(x.w.strands, s)
	x.lower = s.l
	return s.l
}

// cutter cuts a link below when it is given something, or has brought something, if it is both
// ends' by then.
type cutter struct {
	x    *resumed
	next kernel.Watcher // nil: nobody
}

func (c *cutter) Sent(from *kernel.End, data []byte) {
	if c.next != nil {
		c.next.Sent(from, data)
	}
	c.cut(from.Link())
}

func (c *cutter) Received(to *kernel.End, n int) {
	if c.next != nil {
		c.next.Received(to, n)
	}
	c.cut(to.Link())
}

func (c *cutter) cut(l *kernel.Link) {
	x, k := c.x, c.x.w.k
	if !x.up() || !k.Chance(x.w.cfg.Resume.Cuts) {
		return
	}
	k.After(k.Between(0, x.spec.Delay), func() {
		if x.up() && l == x.lower {
			k.Note("cut below %s", x.shown.Name())
			x.w.met[CutLink]++
			l.Cut(errors.New("it was cut"))
		}
	})
}

func (c *cutter) Ended(*kernel.End) {}

// up tells whether both ends run over the last link below. The first one is not cut
// before that: who greets with it does not dial again.
func (x *resumed) up() bool {
	for i, e := range x.ends {
		if e.link == nil || e.link.Made() == 0 || e.link.Handle() != x.lower.Ends[i].Handle() {
			return false
		}
	}
	return true
}

// dial makes a further link below, unless that fails within limit: then done is told, with what
// there is to say about it. judge is what the node at the other end answers.
func (x *resumed) dial(limit time.Duration, judge func() dynamic.Answer, done func(v dynamic.Verdict, reason string)) {
	w := x.w
	s := w.search(dynamic.ResumeSearch(1, limit), x.ends[0].gone)
	s.dial = func(_ dynamic.SearchStep, answer func(dynamic.Answer)) {
		w.k.After(w.k.Between(0, w.cfg.Resume.Again), func() {
			a, failing := s.fails(w.cfg.DialFail)
			switch {
			case failing:
			case !x.ends[0].alive() || !x.ends[1].alive() || x.ends[1].take == nil: // a plugin may be down for a while
				a = unheard(dynamic.NotListening)
			default:
				a = judge()
				w.k.Note("%s: dialled again: %v", x.shown.Name(), a.Verdict)
			}
			answer(a)
		})
	}
	s.over = func(last dynamic.SearchStep) {
		switch {
		case last.Action == dynamic.KeepLink:
			x.replace()
			done(dynamic.Accepted, "")
		case last.Verdict != dynamic.Accepted:
			done(last.Verdict, last.Verdict.String())
		default:
			done(dynamic.UnknownLink, "it could not be dialled in time")
		}
	}
	s.begin()
}

// replace gives both ends a further link below.
func (x *resumed) replace() {
	w := x.w
	w.resumed++
	l := x.below(nil)
	x.ends[0].take(l.Ends[0])
	w.k.After(w.k.Between(0, x.spec.Delay), func() {
		if x.ends[1].alive() {
			x.ends[1].take(l.Ends[1])
		} else {
			_ = l.Ends[1].Close()
		}
	})
}

// watched shows the observer what the user of a link that is resumed sends and gets. It is the
// kernel's link that is shown, whatever it runs over.
type watched struct {
	link.Link
	*resumed
	me    int
	ended bool
	told  bool // of the peer's end
}

// watch is machine.Watcher's, for the end me.
func (x *resumed) watch(l link.Link, me int) link.Link {
	x.ends[me].link = &watched{Link: l, resumed: x, me: me}
	return x.ends[me].link
}

// Made is how many links below both ends have used.
func (e *watched) Made() int { return e.Link.(interface{ Made() int }).Made() }

// Send is the user's.
func (e *watched) Send(batch [][]byte) (int, error) {
	n, err := e.Link.Send(batch)
	if n > 0 && e.watcher != nil {
		e.watcher.Sent(e.shown.Ends[e.me], front(batch, n))
	}
	return n, err
}

// early is how likely bytes come before the user asks for them, as when a timer looks after the
// link.
const early = 0.05

// Recv is the user's.
func (e *watched) Recv(batch [][]byte) (int, error) {
	if e.w.k.Chance(early) {
		e.Link.(interface{ Pump() }).Pump()
		return 0, nil
	}
	n, err := e.Link.Recv(batch)
	if n > 0 && e.watcher != nil {
		tell(e.watcher, e.shown.Ends[e.me], front(batch, n))
	}
	if w, ok := e.watcher.(kernel.EndWatcher); ok && inOrder(err) && !e.told {
		e.told = true
		w.SawEnd(e.shown.Ends[e.me])
	}
	if err != nil && !inOrder(err) {
		e.w.cut(e.shown)
	}
	return n, err
}

// tell tells a watcher of bytes that were received.
func tell(w kernel.Watcher, to *kernel.End, data []byte) {
	if r, ok := w.(ReadWatcher); ok {
		r.Read(to, data)
		return
	}
	w.Received(to, len(data))
}

// front copies the first n bytes of batch.
func front(batch [][]byte, n int) []byte {
	b := make([]byte, 0, n)
	for _, x := range batch {
		b = append(b, x[:min(len(x), n-len(b))]...)
	}
	return b
}

// CloseSend ends this side's bytes.
func (e *watched) CloseSend() error {
	e.end()
	return e.Link.CloseSend()
}

// Close is the user's.
func (e *watched) Close() error {
	e.end()
	return e.Link.Close()
}

func (e *watched) end() {
	if !e.ended && e.watcher != nil {
		e.watcher.Ended(e.shown.Ends[e.me])
	}
	e.ended = true
}

// terms describes a link to a proc at one of its ends.
func (x *resumed) terms(me int) *wireup.Resumable {
	return &wireup.Resumable{Session: x.session[:], Dialler: me == 0, Window: x.w.cfg.Resume.Window, Limit: x.w.cfg.Resume.Limit}
}
