package job

import (
	"cmp"
	"encoding/binary"
	"errors"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/internal/zstd"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// Resume has the settings for direct links, and channels between own sites, that survive the loss
// of their lower links: a node dials again. Zero means the default.
type Resume struct {
	Window int           // bytes; 4 KiB
	Again  time.Duration // maximum wait of a node until it dials again; 10 ms
	Limit  time.Duration // maximum time that a link may be without a lower link; 1 s
	Cuts   float64       // probability that a lower link is cut when it has carried something

	// Parts is the probability that the lower link of a direct link is cut when one end closes the
	// link in order, and that no plugin of the two sites works for a while then.
	Parts float64

	// Compress is the size in bytes from which a write goes compressed above the lower links; 0:
	// none does.
	Compress int
}

func (r *Resume) withDefaults() *Resume {
	c := *r
	c.Window = cmp.Or(c.Window, 4<<10)
	c.Again = cmp.Or(c.Again, 10*time.Millisecond)
	c.Limit = cmp.Or(c.Limit, time.Second)
	return &c
}

// resumeLimit is the longest time that a link may be without a lower link.
func resumeLimit(w *Simulation) time.Duration {
	if w.cfg.Resume == nil {
		return 30 * time.Second // that of job files which have none
	}
	return w.cfg.Resume.Limit
}

// ReadWatcher is a Watcher that sees which bytes were received on resumable links, and not only
// their number: Read is called instead of Received.
type ReadWatcher interface {
	Read(to *kernel.End, data []byte)
}

// resumed is a resumable link of procs or switches, and how nodes make its lower links. Observers
// see shown, which carries the user's bytes; they do not see the lower links.
type resumed struct {
	w       *Simulation
	shown   *kernel.Link
	watcher kernel.Watcher
	spec    kernel.LinkSpec // of the lower links
	places  [2]Endpoint     // but for a link between worlds
	away    *awayLink       // nil: it is inside a job
	cfg     *Resume
	fails   float64 // of a link between worlds: the probability that a dial fails
	session resume.ResumableID
	ends    [2]resumedEnd                         // the first end dials
	lower   *kernel.Link                          // the newest one
	told    bool                                  // the observer knows the link
	plugin  bool                                  // of a direct link: it is made by the plugin's transport
	ordered map[*dynamic.ResumableLink]*moveOrder // ends whose nodes have ordered that it leaves the plugin
}

type resumedEnd struct {
	take  func(*kernel.End) // gives the owner a further lower link
	alive func() bool       // reports whether a node dials or accepts
	gone  func() bool       // reports whether the owner is dead
	link  *watched          // nil until the owner has the link
}

// newResumed makes a resumable link between two places, without a lower link.
func (w *Simulation) newResumed(spec kernel.LinkSpec, a, b Endpoint, ends [2]resumedEnd) *resumed {
	x := &resumed{w: w, spec: spec, places: [2]Endpoint{a, b}, ends: ends, cfg: w.cfg.Resume}
	x.begin()
	return x
}

func (x *resumed) begin() {
	w := x.w
	x.shown = w.k.NewLink(x.spec, nil)
	binary.BigEndian.PutUint64(x.session[:], w.k.Rand().Uint64())
	w.sessions[x.session] = x
}

func (x *resumed) tell() {
	if !x.told && x.w.cfg.Observer != nil {
		x.watcher = x.w.cfg.Observer.Link(x.shown, x.places)
	}
	x.told = true
}

func (x *resumed) below(w kernel.Watcher) *kernel.Link {
	if x.away != nil {
		x.lower = x.away.keep(x.w.k.NewLink(x.spec, &cutter{x: x, next: w}))
		return x.lower
	}
	s := &observedLink{ends: x.places, shown: x.shown, resumes: true}
	s.l = x.w.k.NewLink(x.spec, &cutter{x: x, next: w})
	x.w.openLinks = append(x.w.openLinks, s)
	x.lower = s.l
	return s.l
}

// cutter by chance cuts a lower link when it carries something, if both ends use it by then.
type cutter struct {
	x    *resumed
	next kernel.Watcher // may be nil
}

func (c *cutter) Sent(from *kernel.End, data []byte) {
	if c.next != nil {
		c.next.Sent(from, data)
	}
	c.cut(from.Link())
	c.cutUnread(from)
}

func (c *cutter) Received(to *kernel.End, n int) {
	if c.next != nil {
		c.next.Received(to, n)
	}
	c.cut(to.Link())
}

func (c *cutter) cut(l *kernel.Link) {
	x, k := c.x, c.x.w.k
	if !x.up() || !k.Chance(x.cfg.Cuts) {
		return
	}
	k.After(k.Between(0, x.spec.Delay), func() { c.cutNow(l) })
}

// cutUnread cuts the link when the peer of from has bytes that its program, which computes, has not
// asked for. They are in its buffer, as a timer has looked after the link, and not on their way,
// when the next lower link is greeted.
func (c *cutter) cutUnread(from *kernel.End) {
	x, k := c.x, c.x.w.k
	if !x.up() || !k.Chance(5*x.cfg.Cuts) {
		return
	}
	k.After(x.spec.Delay+k.Between(0, time.Millisecond), func() {
		for _, e := range x.ends {
			if x.up() && e.link.Handle() == from.Peer().Handle() && from.Peer().Unread() > 0 {
				e.link.Link.(interface{ Pump() }).Pump()
				c.cutNow(from.Link())
			}
		}
	})
}

func (c *cutter) cutNow(l *kernel.Link) {
	if x := c.x; x.up() && l == x.lower {
		x.w.k.Tracef("cut below %s", x.shown.Name())
		x.w.met[CutLink]++
		l.Cut(errors.New("it was cut"))
	}
}

func (c *cutter) Ended(*kernel.End) {}

// up reports whether both ends use the last lower link. The first one is not cut before that, as
// the greeting that makes it is not repeated.
func (x *resumed) up() bool {
	for i, e := range x.ends {
		if e.link == nil || e.link.LowerLinks() == 0 || e.link.Handle() != x.lower.Ends[i].Handle() {
			return false
		}
	}
	return true
}

// dial makes a further lower link in one of some ways, by the plugin or not, and calls done when it
// is made, or cannot be within limit, with the last verdict and the reason. judge returns the answer
// of the node at the other end.
func (x *resumed) dial(limit time.Duration, ways []bool, judge func(plugin bool) dynamic.DialResult, done func(made bool, v dynamic.Verdict, reason string)) {
	w := x.w
	s := w.dialling(dynamic.ResumePlan(len(ways), limit), x.ends[0].gone)
	s.dial = func(step dynamic.DialStep, answer func(dynamic.DialResult)) {
		w.k.After(w.k.Between(0, x.cfg.Again), func() {
			chance := w.cfg.DialFail
			if x.away != nil {
				chance = x.fails
			}
			a, failing := s.fails(chance)
			switch {
			case failing:
			case !x.ends[0].alive() || !x.ends[1].alive() || x.ends[1].take == nil: // a plugin may be down for a while
				a = unheard(dynamic.NotListening)
			default:
				a = judge(ways[step.Candidate])
				w.k.Tracef("%s: dialled again: %v", x.shown.Name(), a.Verdict)
			}
			answer(a)
		})
	}
	s.over = func(last dynamic.DialStep) {
		switch {
		case last.Action == dynamic.KeepLink:
			x.replace(ways[last.Candidate])
			done(true, last.Verdict, "")
		case last.Verdict != dynamic.Accepted:
			done(false, last.Verdict, last.Verdict.String())
		default:
			done(false, last.Verdict, "it could not be dialled in time")
		}
	}
	s.begin()
}

func (x *resumed) replace(plugin bool) {
	w := x.w
	w.resumed++
	l := x.replaces(plugin)
	x.again(0)
	x.ends[0].take(l.Ends[0])
	w.k.After(w.k.Between(0, x.spec.Delay), func() {
		if x.ends[1].alive() {
			x.again(1)
			x.ends[1].take(l.Ends[1])
		} else {
			_ = l.Ends[1].Close()
		}
	})
}

// watched shows the observer what the user of a resumable link sends and receives. It is shown as
// one link of the kernel, whatever its lower links are.
type watched struct {
	link.Link
	*resumed
	me    int
	ended bool
	told  bool // the observer knows of the peer's end
}

// watch implements machine.Watcher for end me.
func (x *resumed) watch(l link.Link, me int) link.Link {
	x.ends[me].link = &watched{Link: l, resumed: x, me: me}
	return x.ends[me].link
}

// LowerLinks returns how many lower links both ends have used.
func (e *watched) LowerLinks() int { return e.Link.(interface{ LowerLinks() int }).LowerLinks() }

// Send is called by the user.
func (e *watched) Send(batch [][]byte) (int, error) {
	n, err := e.Link.Send(batch)
	if n > 0 && e.watcher != nil {
		e.watcher.Sent(e.shown.Ends[e.me], front(batch, n))
	}
	return n, err
}

// early is the probability that bytes are received before the user asks for them, as by a timer
// that looks after the link.
const early = 0.05

// Recv is called by the user.
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
	if err != nil && !inOrder(err) && e.away == nil {
		e.w.cut(e.shown)
	}
	return n, err
}

func tell(w kernel.Watcher, to *kernel.End, data []byte) {
	if r, ok := w.(ReadWatcher); ok {
		r.Read(to, data)
		return
	}
	w.Received(to, len(data))
}

func front(batch [][]byte, n int) []byte {
	b := make([]byte, 0, n)
	for _, x := range batch {
		b = append(b, x[:min(len(x), n-len(b))]...)
	}
	return b
}

// CloseSend ends this direction.
func (e *watched) CloseSend() error {
	e.end()
	return e.Link.CloseSend()
}

// Close is called by the user.
func (e *watched) Close() error {
	e.end()
	err := e.Link.Close()
	cutClosed(e)
	return err
}

// away is longer than a closed link waits to be made again.
const away = 3 * time.Second

// cutClosed by chance cuts the last lower link of a link that one end has closed, and keeps both
// sites from making another one until that end has left MPI.
func cutClosed(e *watched) {
	x, w := e.resumed, e.w
	if x.away != nil || x.places[0].Kind != AtProc || !x.up() || !w.k.Chance(x.cfg.Parts) {
		return
	}
	w.met[CutLink]++
	for _, p := range x.places {
		w.pluginsBack[w.job.Procs.At(wire.WorldRank(p.Number)).Client] = w.k.Now() + away
	}
	w.k.Tracef("cut below %s, which is closed", x.shown.Name())
	x.lower.Cut(errBroken)
}

func (e *watched) end() {
	if !e.ended && e.watcher != nil {
		e.watcher.Ended(e.shown.Ends[e.me])
	}
	e.ended = true
}

// compressOf says how the bytes of a resumable link are compressed; nil: they are not.
func compressOf(w *Simulation) *wireup.Compress {
	if r := w.cfg.Resume; r != nil && r.Compress > 0 {
		return &wireup.Compress{Algorithm: wireup.Zstd, Level: zstd.MinLevel, Min: r.Compress}
	}
	return nil
}

func (x *resumed) terms(me int) *wireup.Resumable {
	return &wireup.Resumable{Session: x.session[:], Dialler: me == 0, Window: x.cfg.Window, Limit: x.cfg.Limit}
}
