package mpi

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/meet"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/soak"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// testNodes is the nodes of all procs of a test, in memory: what they do for procs of
// different jobs.
type testNodes struct {
	mu    sync.Mutex
	procs map[dynamic.WorldProc]*proc.Process
	ports map[dynamic.WorldID]*openPort
	pairs map[[2]dynamic.WorldProc]bool // the node of the first one has a link of it to the second one
	waits map[[2]dynamic.WorldProc]bool // it is to dial once the second one's node has no link any more
	links int                           // to procs of other worlds, made so far

	kept   []link.Link // ends that nobody uses, and that stay open
	traces string      // folder for a trace of each proc; empty: none
}

// openPort has who calls, and who wants to take a caller: one of them is empty.
type openPort struct {
	calls, takes []question
	silent       bool // callers are let in, and hear nothing
}

// question is a question that awaits its answer.
type question struct {
	p      *proc.Process
	number uint64
}

func newTestNodes() *testNodes {
	return &testNodes{
		procs: map[dynamic.WorldProc]*proc.Process{}, ports: map[dynamic.WorldID]*openPort{},
		pairs: map[[2]dynamic.WorldProc]bool{}, waits: map[[2]dynamic.WorldProc]bool{},
	}
}

// gate is the node of one proc.
type gate struct {
	m  *testNodes
	me dynamic.WorldProc
}

func (g *gate) Send(m wireup.Message) error {
	g.m.mu.Lock()
	defer g.m.mu.Unlock()
	p := g.m.procs[g.me]
	switch m.Kind {
	case wireup.KindPort:
		g.m.ports[portOf(m.Meeting.Key)] = &openPort{}
		p.Node.HandleMessage(wireup.Message{Kind: wireup.KindPort, Meeting: &wireup.OtherWorld{Request: m.Meeting.Request}}, nil)
	case wireup.KindClosePort:
		name := portOf(m.Meeting.Key)
		for _, k := range g.m.ports[name].calls {
			k.refuse(wireup.KindConnected)
		}
		delete(g.m.ports, name)
	case wireup.KindAccept:
		g.m.take(question{p, m.Meeting.Request}, &m)
	case wireup.KindConnect:
		g.m.call(question{p, m.Meeting.Request}, &m)
	case wireup.KindOpen:
		g.m.open(g.me, dynamic.WorldProc{World: dynamic.WorldID(m.Meeting.World), Rank: m.Peer})
	case wireup.KindForget:
		g.m.forget(g.me, dynamic.WorldProc{World: dynamic.WorldID(m.Meeting.World), Rank: m.Peer})
	default: // nothing that the tests wait for
	}
	return nil
}

// portOf is the name of the port with a key.
func portOf(key []byte) dynamic.WorldID {
	k := dynamic.Token(key)
	return k.World()
}

// refuse answers that there is no such port.
func (k question) refuse(kind wireup.Kind) {
	k.p.Node.HandleMessage(wireup.Message{Kind: kind, Reason: "the port is closed", Meeting: &wireup.OtherWorld{Request: k.number, Class: int(mpierr.Port)}}, nil)
}

func (m *testNodes) take(k question, msg *wireup.Message) {
	if msg.Meeting.Cancel {
		for _, o := range m.ports {
			o.takes = slices.DeleteFunc(o.takes, func(x question) bool { return x == k })
		}
		k.refuse(wireup.KindAccepted)
		return
	}
	o := m.ports[portOf(msg.Meeting.Key)]
	o.takes = append(o.takes, k)
	o.pair()
}

func (m *testNodes) call(k question, msg *wireup.Message) {
	o := m.ports[portOf(msg.Meeting.Key)]
	if o == nil {
		k.refuse(wireup.KindConnected)
		return
	}
	if o.silent {
		a, b := socketPair()
		m.kept = append(m.kept, b)
		k.p.Node.HandleMessage(wireup.Message{Kind: wireup.KindConnected, Meeting: &wireup.OtherWorld{Request: k.number}}, a)
		return
	}
	o.calls = append(o.calls, k)
	o.pair()
}

func (o *openPort) pair() {
	for len(o.calls) > 0 && len(o.takes) > 0 {
		c, t := o.calls[0], o.takes[0]
		o.calls, o.takes = o.calls[1:], o.takes[1:]
		a, b := socketPair()
		c.p.Node.HandleMessage(wireup.Message{Kind: wireup.KindConnected, Meeting: &wireup.OtherWorld{Request: c.number}}, a)
		t.p.Node.HandleMessage(wireup.Message{Kind: wireup.KindAccepted, Meeting: &wireup.OtherWorld{Request: t.number}}, b)
	}
}

// open makes a link unless there is one, as far as the node of either proc knows.
func (m *testNodes) open(from, to dynamic.WorldProc) {
	there, back := [2]dynamic.WorldProc{from, to}, [2]dynamic.WorldProc{to, from}
	if m.pairs[there] {
		return // it is on its way
	}
	if m.pairs[back] {
		m.waits[there] = true
		return
	}
	tell := func(p *proc.Process, who dynamic.WorldProc, l link.Link, reason string) {
		p.Node.HandleMessage(wireup.Message{Kind: wireup.KindLink, Peer: who.Rank, Reason: reason, Meeting: &wireup.OtherWorld{World: who.World[:]}}, l)
	}
	target := m.procs[to]
	if target == nil {
		tell(m.procs[from], to, nil, "nobody is there")
		return
	}
	m.links++
	m.pairs[there], m.pairs[back] = true, true
	a, b := socketPair()
	tell(m.procs[from], to, a, "")
	tell(target, from, b, "")
}

// forget has the node of a proc know that its link is closed.
func (m *testNodes) forget(from, to dynamic.WorldProc) {
	there, back := [2]dynamic.WorldProc{from, to}, [2]dynamic.WorldProc{to, from}
	delete(m.pairs, there)
	if m.waits[back] && !m.pairs[back] {
		delete(m.waits, back)
		m.open(to, from)
	}
}

// traceOf is the file of a proc's trace.
func (m *testNodes) traceOf(name string, rank int) string {
	return filepath.Join(m.traces, fmt.Sprintf("%s-%d.txt", name, rank))
}

// world starts the procs of a job, of two sites if there are enough.
func (m *testNodes) world(t *testing.T, name string, n int) []*proc.Process {
	t.Helper()
	var token dynamic.Token
	copy(token[:], name)
	card := dynamic.BusinessCard{
		Version: dynamic.CardVersion, Node: name, ByteOrder: dynamic.LittleEndian,
		Addresses: []dynamic.TransportAddress{{Transport: "memory", Address: name}},
	}
	d := dynamic.Description{
		World: token.World(), Secret: token.Meeting(),
		Limits: dynamic.Limits{DataLen: 1000, AckMark: 2, HiWater: 4, TagUB: 1 << 20, XSize: 1024, MaxLinear: 4},
		Groups: []dynamic.Group{{Count: (n + 1) / 2, Site: 0, Card: card}},
	}
	if n > 1 {
		d.Groups = append(d.Groups, dynamic.Group{Count: n / 2, Site: 1, Card: card})
	}
	text, err := d.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	cardText, err := card.AppendText(nil)
	if err != nil {
		t.Fatal(err)
	}
	l := layout{procs: n, client: func(r int) int { return r / ((n + 1) / 2) }}
	procs := make([]*proc.Process, n)
	for r := range procs {
		who := dynamic.WorldProc{World: d.World, Rank: wire.WorldRank(r)}
		job := l.job(r)
		job.World, job.Card = text, string(cardText)
		if m.traces != "" {
			job.Trace = m.traceOf(name, r)
		}
		if procs[r], err = proc.NewProcess(job, nil, machine.Local{}, &gate{m, who}); err != nil {
			t.Fatal(err)
		}
		m.mu.Lock()
		m.procs[who] = procs[r]
		m.mu.Unlock()
	}
	for a := range procs {
		for b := range a {
			la, lb := socketPair()
			connect(t, procs[a], b, la)
			connect(t, procs[b], a, lb)
		}
	}
	return procs
}

// apiece runs body on all procs of some worlds at a time.
func apiece(t *testing.T, worlds [][]*proc.Process, body func(world int, c *Comm) error) {
	t.Helper()
	errs := make(chan error)
	n := 0
	for w, procs := range worlds {
		n += len(procs)
		for r, p := range procs {
			go func() {
				err := body(w, (*Comm)(p.Comms.World))
				if err != nil {
					err = fmt.Errorf("world %d, rank %d: %w", w, r, err)
					p.Lock()
					p.Endpoints.Close() // so that the others see it
					p.Unlock()
				}
				errs <- err
			}()
		}
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// rendezvous connects two worlds: the root of the first one opens a port, whose
// name gets to the other by a channel.
func rendezvous(c *Comm, accepts bool, root int, name chan string) (*Comm, error) {
	if !accepts {
		port := ""
		if c.Rank() == root {
			port = <-name
		}
		return c.Connect(port, nil, root)
	}
	port := ""
	if c.Rank() == root {
		var err error
		if port, err = meet.OpenPort(c.in().Process(), nil); err != nil {
			return nil, err
		}
		name <- port
	}
	d, err := c.Accept(port, nil, root)
	if c.Rank() == root {
		err = errors.Join(err, meet.ClosePort(c.in().Process(), port))
	}
	return d, err
}

// everyoneSends has each member send to each on the other side.
func everyoneSends(inter *Comm) error {
	n, err := inter.RemoteSize()
	if err != nil {
		return err
	}
	var open []Request
	got := make([]int64, n)
	for r := range n {
		q, err := Irecv(inter, got[r:r+1], r, 3)
		if err != nil {
			return err
		}
		s, err := Isend(inter, []int64{int64(100*inter.Rank() + r)}, r, 3)
		if err != nil {
			return err
		}
		open = append(open, q, s)
	}
	if err := Waitall(open, nil); err != nil {
		return err
	}
	for r := range n {
		if err := expect("message", got[r], int64(100*r+inter.Rank())); err != nil {
			return err
		}
	}
	long := pattern(5000, inter.Rank()) // many packets of what the worlds have in common
	in := make([]byte, len(long))
	if inter.Rank() == 0 {
		if _, err := Sendrecv(inter, long, 0, 4, in, 0, 4); err != nil {
			return err
		}
		return expect("long message", string(in), string(long))
	}
	return nil
}

func TestConnect(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {3, 2}, {2, 5}} {
		for root := range min(size[0], size[1]) {
			t.Run(fmt.Sprintf("%d and %d, root %d", size[0], size[1], root), func(t *testing.T) {
				m, name := newTestNodes(), make(chan string, 1)
				worlds := [][]*proc.Process{m.world(t, "a", size[0]), m.world(t, "b", size[1])}
				apiece(t, worlds, func(w int, c *Comm) error {
					inter, err := rendezvous(c, w == 0, root, name)
					if err != nil {
						return err
					}
					n, _ := inter.RemoteSize()
					dup, err2 := inter.Dup()
					if err := errors.Join(expect("remote size", n, size[1-w]), everyoneSends(inter), err2); err != nil {
						return err
					}
					sum := []int64{0}
					return errors.Join(everyoneSends(dup), Allreduce(dup, []int64{int64(10 + w)}, sum, Sum),
						expect("sum of the others", sum[0], int64(size[1-w]*(11-w))),
						dup.Disconnect(), inter.Disconnect())
				})
				for w, procs := range worlds {
					for r, p := range procs {
						if met := p.Worlds.Table.Load().Met; len(met) > 0 && !met[0].Leaving {
							t.Errorf("world %d, rank %d still knows a world", w, r)
						}
					}
				}
			})
		}
	}
}

// Three worlds meet pairwise, all at once.
func TestConnectThreeWorldsAtOnce(t *testing.T) {
	m := newTestNodes()
	worlds := [][]*proc.Process{m.world(t, "a", 2), m.world(t, "b", 3), m.world(t, "c", 2)}
	names := map[[2]int]chan string{{0, 1}: make(chan string, 1), {0, 2}: make(chan string, 1), {1, 2}: make(chan string, 1)}
	apiece(t, worlds, func(w int, c *Comm) error {
		errs := make(chan error, 2)
		for _, pair := range [][2]int{{0, 1}, {0, 2}, {1, 2}} {
			if pair[0] != w && pair[1] != w {
				continue
			}
			own, err := c.Dup() // goroutines have communicators of their own
			if err != nil {
				return err
			}
			go func() {
				inter, err := rendezvous(own, pair[0] == w, 0, names[pair])
				if err == nil {
					err = errors.Join(everyoneSends(inter), inter.Disconnect())
				}
				errs <- err
			}()
		}
		return errors.Join(<-errs, <-errs)
	})
}

// TestConnectAgainAndAgain has two worlds meet many times. Both ends of a link dial at
// once, and a link that is left over of one meeting must not be used in the next.
func TestConnectAgainAndAgain(t *testing.T) {
	m, name := newTestNodes(), make(chan string, 1)
	worlds := [][]*proc.Process{m.world(t, "a", 2), m.world(t, "b", 1)}
	files, goroutines := openFiles(t), runtime.NumGoroutine()
	times := soak.Size(200, 1000)
	apiece(t, worlds, func(w int, c *Comm) error {
		for range times {
			inter, err := rendezvous(c, w == 0, 0, name)
			if err == nil {
				err = errors.Join(everyoneSends(inter), inter.Disconnect())
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	for w, procs := range worlds {
		for r, p := range procs {
			if n := len(p.Endpoints.List); n > 12 {
				t.Errorf("world %d, rank %d has %d places for links after %d meetings", w, r, n, times)
			}
			if n := len(p.Worlds.Table.Load().Met) + len(p.Worlds.Remotes) + len(p.Worlds.Introduced) + len(p.Node.Asking) + len(p.Node.PortKeys) + len(p.Worlds.Early) + len(p.Background.List); n > 6 {
				t.Errorf("world %d, rank %d remembers %d things after %d meetings", w, r, n, times)
			}
		}
	}
	// The last links, whose ends nobody has read yet, may be left.
	if n := openFiles(t); n > files+12 {
		t.Errorf("%d open files after %d meetings, %d before", n, times, files)
	}
	if n := runtime.NumGoroutine(); n > goroutines+12 {
		t.Errorf("%d goroutines after %d meetings, %d before", n, times, goroutines)
	}
}

// openFiles counts the descriptors of this process.
func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		skips.NotRun(t, fmt.Sprint("there is no /proc: ", err), "mount /proc")
	}
	return len(list)
}

func TestConnectFails(t *testing.T) {
	m := newTestNodes()
	worlds := [][]*proc.Process{m.world(t, "a", 3), m.world(t, "b", 1)}
	closed, err := meet.OpenPort(worlds[1][0], nil)
	if err = errors.Join(err, meet.ClosePort(worlds[1][0], closed)); err != nil {
		t.Fatal(err)
	}
	apiece(t, worlds[:1], func(_ int, c *Comm) error {
		var all []error
		for _, x := range []struct{ what, port string }{
			{"closed port", closed}, {"malformed port", "tag#0$"}, {"damaged port", strings.Replace(closed, "rank=", "rank=x", 1)},
		} {
			port := ""
			if c.Rank() == 1 {
				port = x.port
			}
			d, err := c.Connect(port, nil, 1)
			e, err2 := c.Accept(port, nil, 1)
			all = append(all, classed("connect to "+x.what, err, mpierr.Port), classed("accept at "+x.what, err2, mpierr.Port),
				expect("communicators", d == nil && e == nil, true))
		}
		gone, late := NewInfo(), NewInfo()
		all = append(all, gone.Free(), late.Set("timeout", "soon"))
		_, err1 := c.Connect(closed, gone, 0)
		_, err2 := c.Connect(closed, late, 0)
		want := []mpierr.Class{mpierr.Other, mpierr.InfoValue} // that an info was freed is nothing that others are told
		if c.Rank() == 0 {
			want[0] = mpierr.Info
		}
		all = append(all, classed("freed info", err1, want[0]), classed("timeout soon", err2, want[1]),
			classed("a port that is not open", meet.ClosePort(c.in().Process(), closed), mpierr.Port), classed("open with a freed info", second(meet.OpenPort(c.in().Process(), gone.in())), mpierr.Info))
		return errors.Join(append(all,
			classed("root 3", second(c.Connect(closed, nil, 3)), mpierr.Root),
			classed("root -1", second(c.Accept(closed, nil, -1)), mpierr.Root))...)
	})
}

// brief is an info with a timeout.
func brief(t *testing.T, seconds string) *Info {
	t.Helper()
	info := NewInfo()
	if err := info.Set("timeout", seconds); err != nil {
		t.Fatal(err)
	}
	return info
}

// TestTimeouts has roots wait for what does not come: all members of both sides are told.
func TestTimeouts(t *testing.T) {
	timedOut := func(inter *Comm, err error) error {
		if inter != nil || !errors.Is(err, ErrCall) || ErrorClass(err) != mpierr.Port {
			return fmt.Errorf("class %v of %w", ErrorClass(err), err)
		}
		return nil
	}
	t.Run("nobody calls", func(t *testing.T) {
		apiece(t, [][]*proc.Process{newTestNodes().world(t, "a", 3)}, func(_ int, c *Comm) (err error) {
			port := ""
			if c.Rank() == 1 {
				if port, err = meet.OpenPort(c.in().Process(), nil); err != nil {
					return err
				}
			}
			inter, err := c.Accept(port, brief(t, "0.05"), 1)
			return errors.Join(timedOut(inter, err), Barrier(c))
		})
	})
	t.Run("nobody speaks there", func(t *testing.T) {
		m, name := newTestNodes(), make(chan string, 2)
		worlds := [][]*proc.Process{m.world(t, "a", 1), m.world(t, "b", 3)}
		over := make(chan bool)
		apiece(t, worlds, func(w int, c *Comm) error {
			if w == 0 { // takes the caller, and has no more to say
				port, err := meet.OpenPort(c.in().Process(), nil)
				if err != nil {
					return err
				}
				key := c.in().Process().Node.PortKeys[port]
				silence(m, key.World())
				name <- port
				<-over
				return nil
			}
			port := ""
			if c.Rank() == 0 {
				port = <-name
			}
			inter, err := c.Connect(port, brief(t, "0.05"), 0)
			if c.Rank() == 0 {
				close(over)
			}
			return errors.Join(timedOut(inter, err), Barrier(c))
		})
	})
	for _, impatient := range []int{0, 1} { // the side whose root has a timeout
		t.Run(fmt.Sprintf("a member of side %d does not come", 1-impatient), func(t *testing.T) {
			m, name, over := newTestNodes(), make(chan string, 1), make(chan bool)
			apiece(t, [][]*proc.Process{m.world(t, "a", 2), m.world(t, "b", 2)}, func(w int, c *Comm) (err error) {
				info, port := NewInfo(), ""
				switch {
				case w != impatient && c.Rank() == 1:
					<-over // the others have given up
				case w == impatient:
					info = brief(t, "0.2")
				}
				var inter *Comm
				if w == 0 {
					if c.Rank() == 0 {
						if port, err = meet.OpenPort(c.in().Process(), nil); err != nil {
							return err
						}
						name <- port
					}
					inter, err = c.Accept(port, info, 0)
				} else {
					if c.Rank() == 0 {
						port = <-name
					}
					inter, err = c.Connect(port, info, 0)
				}
				if w == impatient {
					if c.Rank() == 0 {
						close(over)
					}
					return errors.Join(timedOut(inter, err), Barrier(c))
				}
				if inter != nil || err == nil {
					return fmt.Errorf("connected with who has given up: %w", err)
				}
				return Barrier(c)
			})
		})
	}
	t.Run("no number", func(t *testing.T) {
		apiece(t, [][]*proc.Process{newTestNodes().world(t, "a", 1)}, func(_ int, c *Comm) error {
			for _, text := range []string{"soon", "-1", "0", "1e9"} {
				if _, err := c.Connect("", brief(t, text), 0); ErrorClass(err) != mpierr.InfoValue {
					return fmt.Errorf("timeout %q: class %v of %w", text, ErrorClass(err), err)
				}
			}
			return nil
		})
	})
}

// silence has a port take every caller and say nothing to it.
func silence(m *testNodes, port dynamic.WorldID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ports[port].silent = true
}

// TestConnectWithOneself: a proc cannot be on both sides.
func TestConnectWithOneself(t *testing.T) {
	p := newTestNodes().world(t, "a", 1)[0]
	other, err := (*Comm)(p.Comms.Self).Dup()
	if err != nil {
		t.Fatal(err)
	}
	port, err := meet.OpenPort(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	errs := make(chan error, 1)
	go func() {
		_, err := other.Accept(port, nil, 0)
		errs <- err
	}()
	_, err = (*Comm)(p.Comms.Self).Connect(port, nil, 0)
	for side, err := range map[string]error{"connects": err, "accepts": <-errs} {
		if ErrorClass(err) != mpierr.Comm {
			t.Errorf("who %s: class %v of %v", side, ErrorClass(err), err)
		}
	}
}

// TestConnectThatOneMemberCannot: where a member of one side cannot make the
// communicator nobody has it.
func TestConnectThatOneMemberCannot(t *testing.T) {
	for _, who := range []int{1, 2, 4} { // the root is 2
		m, name := newTestNodes(), make(chan string, 1)
		worlds := [][]*proc.Process{m.world(t, "a", 5), m.world(t, "b", 2)}
		d, err := worlds[0][who].Worlds.Own()
		if err != nil {
			t.Fatal(err)
		}
		d.Groups[0].Card.ByteOrder = dynamic.BigEndian
		if worlds[0][who].Job.World, err = d.Append(nil); err != nil {
			t.Fatal(err)
		}
		apiece(t, worlds, func(w int, c *Comm) error {
			inter, err := rendezvous(c, w == 0, 2*(1-w), name)
			if inter != nil || err == nil {
				return fmt.Errorf("it has a communicator though rank %d has none, error %w", who, err)
			}
			if w == 0 && c.Rank() == who && !errors.Is(err, ErrAlone) {
				return fmt.Errorf("who cannot is told %w", err)
			}
			return Barrier(c)
		})
	}
}
