package mpi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/wireup"
)

// step is a step of connecting. The two sides take the same ones: the root of
// either is the one that talks to the other side. Errors name the step, and the
// messages between the roots have it as their tag.
type step int

// The steps. The first is that of OpenPort.
const (
	stepOpen      step = iota
	stepDial           // the connecting root finds out whom to call,
	stepGreet          // and shows the key of the port;
	stepQueue          // who is called keeps the caller until
	stepTake           // the accepting root takes it.
	stepTemporary      // Both roots have a temporary link.
	stepCollect        // Each side agrees on context IDs and finds the worlds of its members;
	stepSizes          // the roots exchange how much is to come,
	stepTellSizes      // and tell the others.
	stepWorlds         // The same with descriptions of the worlds,
	stepTellWorlds
	stepGroups // and with the groups.
	stepTellGroups
	stepMake    // The communicator is made;
	stepSync    // both roots have it,
	stepBarrier // all members of a side have it,
	stepClose   // and the temporary link is closed.
)

// fault names the step of an error.
func (s step) fault(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("step %d of connecting: %w", s, err)
}

// Accept waits for somebody to connect to a port of the root's and makes an
// intercommunicator of c's group and that of those who do. All members of c, an
// intracommunicator, call it. port and info matter at the root only
// (MPI_Comm_accept). It waits for as long as nobody comes and the port is open.
//
// Errors: dynamic.ErrPort for a port that is not the root's; ErrCall once the port is
// closed; coll.ErrRoot; ErrAlone where no other jobs can be met; ErrPeerGone, or
// message.ErrPeerDown, where somebody dies on the way. All members of both sides get an
// error then, of the class that the root's has, and no communicator.
func (c *Comm) Accept(port string, info *Info, root int) (*Comm, error) {
	d, err := c.connect(port, info, root, toAccept)
	return d, c.failed("Accept", err)
}

// Connect makes an intercommunicator of c's group and that of those who accept at a
// port, which may be of another job. All members of c, an intracommunicator, call
// it. port and info matter at the root only (MPI_Comm_connect). The info key timeout
// says how many seconds to wait at most until somebody accepts (60).
//
// The errors are those of Accept: ErrCall where nobody listens, or accepts in time.
func (c *Comm) Connect(port string, info *Info, root int) (*Comm, error) {
	d, err := c.connect(port, info, root, toConnect)
	return d, c.failed("Connect", err)
}

// meeting is a side's part in connecting. Its process is locked.
type meeting struct {
	p     *process
	c     *Comm
	root  int
	shown *procedure
	seq   uint32 // of the constructor
	near  talk   // with the members of c
	tree  comm.Tree
	me    int    // position in the tree
	guest *guest // at the root, while there is a temporary link
	far   far    // at the root: the other side's

	context wire.ContextID
	theirs  extent
	worlds  []*dynamic.Description // of the other side
	remote  *comm.Group
	made    *Comm
}

func (c *Comm) connect(port string, info *Info, root int, kind string) (*Comm, error) {
	if err := c.mayConnect(root, "Connect and Accept"); err != nil {
		return nil, err
	}
	p := c.p
	p.lock()
	defer p.unlock()
	if err := p.mayMeet(); err != nil {
		return nil, err
	}
	m := c.newMeeting(root)
	defer p.endMeeting()
	m.show(kind)
	var err error
	if c.Rank() == root {
		err = m.reach(port, info, kind == toConnect)
	}
	return m.complete(err)
}

// far is the root of the other side, as the root of this one talks to it.
type far interface {
	// swap tells it body, or why there is none, and hears the same from it.
	swap(s step, body []byte, bad error) ([]byte, error)
}

// mayConnect refuses communicators and roots that cannot take part in a meeting.
func (c *Comm) mayConnect(root int, what string) error {
	if err := c.checkIntra(); err != nil {
		return err
	}
	if _, ok := c.Proc(root); !ok {
		return fmt.Errorf("%w: %d, the communicator has 0 to %d", coll.ErrRoot, root, c.Size()-1)
	}
	if !c.ours() {
		return errForeign(what)
	}
	return nil
}

// newMeeting begins a meeting, which endMeeting ends.
func (c *Comm) newMeeting(root int) *meeting {
	p := c.p
	p.beginMeeting()
	return c.meeting(root)
}

func (c *Comm) meeting(root int) *meeting {
	m := &meeting{p: c.p, c: c, root: root, seq: c.ordinal(), tree: comm.NewTree(c.Masters())}
	m.near = c.talk(inOrder, wireTag(m.seq))
	m.me = m.tree.Position(c.Rank())
	return m
}

// show has a trace show the steps.
func (m *meeting) show(kind string) {
	m.shown = m.p.procedure(kind)
	m.shown.says(func() string {
		return fmt.Sprintf("begins, rank %d of %d, root %d, context %d", m.c.Rank(), m.c.Size(), m.root, m.c.Context())
	})
}

// took has a trace show that this proc has taken a step.
func (m *meeting) took(s step, what func() string) { m.shown.took(int(s), what) }

// label has messages to the members of c say of which step they are, as far as all of
// them are known to connect: up to there they look like those of other constructors, so
// that who calls another one is found out.
func (m *meeting) label(s step) {
	if s > stepCollect {
		m.near = m.c.talk(byStep, stepTag(m.seq, s))
	}
}

// stepTag is the tag of the messages of a step in a side, for constructor number seq.
func stepTag(seq uint32, s step) wire.Tag { return wireTag(seq<<5) | wire.Tag(s) }

// complete goes through the steps once the roots have a link, or bad is why not, and
// ends that link.
func (m *meeting) complete(bad error) (*Comm, error) {
	err := m.hold(bad)
	if m.guest != nil {
		m.guest.leave()
		m.took(stepClose, func() string { return "the temporary link is given up" })
	}
	err = m.settle(err)
	return m.made, err
}

// settle leaves nothing behind of a meeting that has failed.
func (m *meeting) settle(err error) error {
	if err == nil {
		m.shown.ends(nil, m.made)
		return nil
	}
	m.shown.ends(err, nil)
	var met []*world
	for _, d := range m.worlds {
		if w := m.p.known(d.World); w != nil {
			met = append(met, w)
		}
	}
	if m.made != nil {
		m.made.life.Store(freed)
		m.p.use(m.made.Comm, -1)
		m.p.release(m.made.Context())
		m.made = nil
	}
	m.p.abandon(met)
	return err
}

// reach gets the temporary link. Who has called has only so much time until it is
// accepted; who accepts takes the next caller where one has gone away or says nothing.
func (m *meeting) reach(port string, info *Info, calling bool) error {
	hints, err := snapshot(info)
	if err != nil {
		return err
	}
	if calling {
		return m.reachOut(port, hints)
	}
	for m.guest == nil {
		name, d, err := m.takeCaller(port)
		if err != nil {
			return err
		}
		late := m.p.deadline(callLimit)
		err = m.welcome(d, name, false, late)
		late.stop()
		if err != nil && m.p.failure != nil {
			return err
		}
	}
	return nil
}

// reachOut is reach for who calls.
func (m *meeting) reachOut(port string, hints *Info) error {
	limit, err := patienceOf(hints)
	if err != nil {
		return stepDial.fault(err)
	}
	late := m.p.deadline(limit)
	defer late.stop()
	name, d, err := m.callPort(port, limit)
	if err != nil {
		return err
	}
	if err := m.welcome(d, name, true, late); err != nil {
		return err
	}
	return nil
}

// welcome makes a guest of who is at the other end of a link.
func (m *meeting) welcome(d delivery, name dynamic.World, calling bool, late *deadline) error {
	if d.l == nil {
		return stepTemporary.fault(fmt.Errorf("%w: an answer without a link", ErrNode))
	}
	g, err := m.p.invite(d.l, name, calling)
	if err != nil {
		return stepTemporary.fault(err)
	}
	if err := g.introduce(late); err != nil {
		g.leave()
		return stepTemporary.fault(err)
	}
	m.guest, m.far = g, g
	m.took(stepTemporary, func() string {
		return fmt.Sprintf("both roots have a temporary link, with context %d; this one is %d there, the other %d", guestContext, g.talk.base, g.talk.self.Rank)
	})
	return nil
}

// callLimit is how long a call may take where nothing else is said, and how long who
// accepts waits for a caller's first words.
const callLimit = time.Minute

// deadline is an end of waiting. The process's lock guards it.
type deadline struct {
	timer machine.Timer
	limit time.Duration
	over  bool
}

func (p *process) deadline(limit time.Duration) *deadline {
	d := &deadline{limit: limit}
	d.timer = p.machine.AfterFunc(limit, func() {
		p.lock()
		d.over = true
		p.rouse()
		p.unlock()
	})
	return d
}

func (d *deadline) stop() { d.timer.Stop() }

// callPort has the node dial a port.
func (m *meeting) callPort(text string, limit time.Duration) (name dynamic.World, d delivery, err error) {
	port, err := dynamic.ParsePort(text)
	if err != nil {
		return name, d, stepDial.fault(err)
	}
	card, err := port.Card.AppendText(nil)
	if err != nil {
		return name, d, stepDial.fault(err)
	}
	x := &wireup.Meeting{Key: port.Key[:], Card: string(card), Timeout: limit}
	m.took(stepDial, func() string { return fmt.Sprintf("calls %s of %v", portLabel(port.Name()), port.Opener) })
	d, err = m.p.ask(wireup.Message{Kind: wireup.KindCall, Meeting: x}, dynamic.World{})
	if err == nil {
		m.took(stepGreet, func() string { return "let in, by " + d.msg.Transport })
	}
	return port.Name(), d, stepGreet.fault(err)
}

// patienceOf is the timeout of an info.
func patienceOf(hints *Info) (time.Duration, error) {
	if hints == nil {
		return callLimit, nil
	}
	v, ok, err := hints.value("timeout")
	if err != nil || !ok {
		return callLimit, err
	}
	seconds, err := strconv.ParseFloat(v, 64)
	if err != nil || !(seconds > 0 && seconds <= 1e6) {
		return 0, fmt.Errorf("%w: timeout %q is no number of seconds", ErrInfoValue, v)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// takeCaller waits for a caller of a port.
func (m *meeting) takeCaller(text string) (name dynamic.World, d delivery, err error) {
	key, err := m.p.door(text)
	if err != nil {
		return name, d, stepTake.fault(err)
	}
	name = key.World()
	m.shown.says(func() string { return "waits for a caller of " + portLabel(name) })
	d, err = m.p.ask(wireup.Message{Kind: wireup.KindTake, Meeting: &wireup.Meeting{Key: key[:]}}, name)
	if err == nil {
		m.took(stepQueue, func() string { return fmt.Sprintf("the node kept a caller for %v", d.msg.Meeting.Waited) })
		m.took(stepTake, func() string { return fmt.Sprintf("takes the caller, who came by %s", d.msg.Transport) })
	}
	return name, d, stepTake.fault(err)
}

// hold goes through the steps from where the roots have a link, or bad is why they
// have none.
func (m *meeting) hold(bad error) error {
	if _, err := m.share(stepTemporary, nil, bad); err != nil {
		return err
	}
	if m.guest == nil {
		m.took(stepTemporary, func() string { return fmt.Sprintf("the root, rank %d, has a temporary link", m.root) })
	}
	if err := m.agree(); err != nil {
		return err
	}
	return m.acquaint(nil)
}

// acquaint has both sides know each other, and makes the communicator, whose context is
// known. bad is why it cannot be made.
func (m *meeting) acquaint(bad error) error {
	own := m.p.catalogue(m.c.Comm.Group())
	text, err := own.describe()
	if bad != nil {
		err = bad
	}
	if text, err = m.exchange(stepWorlds, text, err); err != nil {
		return err
	}
	if err = m.learn(text); err == nil {
		text = own.group()
	}
	if text, err = m.exchange(stepGroups, text, err); err != nil {
		return err
	}
	if err = m.read(text); err == nil {
		err = m.make()
	}
	if err == nil {
		err = stepMake.fault(m.p.arrive(m.remote))
	}
	if err == nil {
		m.took(stepMake, func() string {
			return fmt.Sprintf("the communicator is made, context %d, %d members here and %d there", m.context, m.c.Size(), m.remote.Size())
		})
	}
	if _, err = m.exchange(stepSync, nil, err); err != nil {
		return err
	}
	m.took(stepBarrier, func() string { return "the root says that both have it" })
	return nil
}

// agree is about context IDs: within each side, and then between the two.
func (m *meeting) agree() error {
	x := m.c.pact(m.c.ordinal())
	x.wide = false // the other side takes part
	x.propose(doesConnect, nil, func() {})
	x.wait()
	err := m.sizes(x.all, x.err)
	v := verdict{Proposal: x.all.With(m.theirs.Proposal)}
	if err == nil && unconfirmed(&v.Proposal, 0) {
		err = m.confirm(&v)
	}
	m.context, err = m.p.conclude(x.mine, v, comm.InterContexts, nil, err)
	return stepCollect.fault(err)
}

// sizes has the sides tell each other how much is to come, and what they propose.
func (m *meeting) sizes(all comm.Proposal, bad error) error {
	own := m.p.catalogue(m.c.Comm.Group())
	mine := extent{Proposal: all, members: m.c.Size(), worlds: len(own.worlds)}
	if bad == nil {
		m.took(stepCollect, func() string { return "this side agrees: " + mine.String() })
	}
	text, err := m.exchange(stepSizes, mine.append(nil), bad)
	if err == nil {
		m.theirs, err = readExtent(text)
	}
	if err == nil {
		m.took(stepTellSizes, func() string { return "known to all members: the other side has " + m.theirs.String() })
	}
	return err
}

// exchange has the roots tell each other something, and then all members of their
// sides, which is the next step.
func (m *meeting) exchange(s step, body []byte, bad error) ([]byte, error) {
	if m.c.Rank() == m.root {
		n := len(body)
		if body, bad = m.far.swap(s, body, bad); bad == nil {
			m.took(s, func() string { return fmt.Sprintf("told the other root %d bytes and heard %d", n, len(body)) })
		}
	}
	return m.share(s+1, body, bad)
}

// share tells all members what the root has, or why it has nothing. What is wrong
// with others matters to themselves only.
func (m *meeting) share(s step, body []byte, bad error) ([]byte, error) {
	m.label(s)
	text, err := m.spread(status(bad, body)[lengthLen:])
	switch {
	case bad != nil:
		return nil, bad
	case err != nil:
		return nil, s.fault(err)
	case m.c.Rank() == m.root:
		return body, nil
	}
	text, err = outcome(text)
	return text, s.fault(err)
}

// spread gets what the root says to all members: to rank 0 first, and then down the
// tree.
func (m *meeting) spread(text []byte) ([]byte, error) {
	t, root := &m.near, m.tree.Position(m.root)
	send := func(position int) []sending { return t.post(m.tree.Rank(position), append(letter(), text...)) }
	var open []sending
	var err error
	parent, below := m.tree.Parent(m.me)
	switch {
	case m.me == root && below:
		open = send(0)
		_, err = t.read(m.tree.Rank(parent), maxSwap)
	case below:
		text, err = t.read(m.tree.Rank(parent), maxSwap)
	case m.me != root:
		text, err = t.read(m.root, maxSwap)
	}
	if err != nil {
		text = binary.BigEndian.AppendUint32(nil, faultCode(err)) // so that those below do not wait
	}
	for _, child := range m.tree.Children(m.me) {
		open = append(open, send(child)...)
	}
	return text, errors.Join(err, t.sent(open))
}

// make makes the communicator.
func (m *meeting) make() (err error) {
	m.made, err = m.c.adopt(comm.Spec{Group: m.c.Comm.Group(), Masters: m.c.Masters(), Remote: m.remote}, m.context)
	return stepMake.fault(err)
}
