package mpi

import (
	"fmt"
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
	stepSync    // both roots know that their members have it,
	stepBarrier // and so do all members,
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
// (MPI_Comm_accept). It waits for as long as nobody comes and the port is open. The info
// key timeout says after how many seconds it is to be over at most, whoever is waited
// for.
//
// Errors: dynamic.ErrPort for a port that is not the root's; ErrCall once the port is
// closed, or in time; coll.ErrRoot; ErrAlone where no other jobs can be met; ErrPeerGone, or
// message.ErrPeerDown, where somebody dies on the way; comm.ErrComm for who connects to a
// port of its own. All members of both sides get an
// error then, of the class that the root's has, and no communicator.
func (c *Comm) Accept(port string, info *Info, root int) (*Comm, error) {
	d, err := c.connect(port, info, root, toAccept)
	return d, c.failed("Accept", err)
}

// Connect makes an intercommunicator of c's group and that of those who accept at a
// port, which may be of another job. All members of c, an intracommunicator, call
// it. port and info matter at the root only (MPI_Comm_connect). It waits 60 seconds
// until somebody accepts, and for as long as members of either side take from then on.
// The info key timeout says after how many seconds it is to be over at most, instead.
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

	late   *deadline // of it all; nil: it may take as long as it does
	taking uint64    // the request for a caller that waits at the node; 0: none

	bad     error // why this proc cannot have the communicator, though it goes on
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
	if m.late != nil {
		m.late.stop()
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
	limit, err := seconds(hints, "timeout")
	if err != nil {
		return err
	}
	if limit > 0 {
		m.late = m.p.deadline(limit, m.cut)
	} else {
		limit = callLimit
	}
	if calling {
		return m.reachOut(port, limit)
	}
	for m.guest == nil {
		name, d, err := m.takeCaller(port)
		if err != nil {
			return err
		}
		late := m.p.deadline(callLimit, nil)
		err = m.welcome(d, name, false, late)
		late.stop()
		if err != nil && (m.p.failure != nil || m.overdue()) {
			return m.because(err)
		}
	}
	return nil
}

// reachOut is reach for who calls.
func (m *meeting) reachOut(port string, limit time.Duration) error {
	late := m.p.deadline(limit, nil)
	defer late.stop()
	opener, name, d, err := m.callPort(port, limit)
	if err == nil {
		err = m.welcome(d, name, true, late)
	}
	if err != nil || opener != m.p.member(comm.Proc(m.p.job.Rank)) {
		return err
	}
	_, err = m.far.swap(stepSizes, nil, stepTemporary.fault(fmt.Errorf("%w: the port is this proc's own, and it cannot be in both groups", comm.ErrComm)))
	return err
}

// cut ends what the root waits for at its node or from the other side, as the time is
// over.
func (m *meeting) cut() {
	if m.taking != 0 {
		_ = m.p.control.Send(wireup.Message{Kind: wireup.KindTake, Meeting: &wireup.Meeting{Request: m.taking, Cancel: true}})
	}
	if m.guest != nil && !m.guest.lost && !m.guest.left {
		m.guest.q.Drop(ErrCall)
	}
}

// overdue tells whether the time is over that the program allows.
func (m *meeting) overdue() bool { return m.late != nil && m.late.over }

// because says of an error that the time was over, if so.
func (m *meeting) because(err error) error {
	if err == nil || !m.overdue() {
		return err
	}
	return fmt.Errorf("%w: the two sides have not connected for %v: %s", ErrCall, m.late.limit, err.Error())
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

// deadline begins to wait; then, if there is something, is done at the end.
func (p *process) deadline(limit time.Duration, then func()) *deadline {
	d := &deadline{limit: limit}
	d.timer = p.machine.AfterFunc(limit, func() {
		p.lock()
		d.over = true
		if then != nil {
			then()
		}
		p.rouse()
		p.unlock()
	})
	return d
}

func (d *deadline) stop() { d.timer.Stop() }

// callPort has the node dial a port.
func (m *meeting) callPort(text string, limit time.Duration) (opener dynamic.Member, name dynamic.World, d delivery, err error) {
	port, err := dynamic.ParsePort(text)
	if err != nil {
		return opener, name, d, stepDial.fault(err)
	}
	card, err := port.Card.AppendText(nil)
	if err != nil {
		return opener, name, d, stepDial.fault(err)
	}
	x := &wireup.Meeting{Key: port.Key[:], Card: string(card), Timeout: limit}
	m.took(stepDial, func() string { return fmt.Sprintf("calls %s of %v", portLabel(port.Name()), port.Opener) })
	d, err = m.p.ask(wireup.Message{Kind: wireup.KindCall, Meeting: x}, dynamic.World{})
	if err == nil {
		m.took(stepGreet, func() string { return "let in, by " + d.msg.Transport })
	}
	return port.Opener, port.Name(), d, stepGreet.fault(err)
}

// takeCaller waits for a caller of a port.
func (m *meeting) takeCaller(text string) (name dynamic.World, d delivery, err error) {
	key, err := m.p.door(text)
	if err != nil {
		return name, d, stepTake.fault(err)
	}
	name, m.taking = key.World(), m.p.questions+1 // which ask gives it
	defer func() { m.taking = 0 }()
	m.shown.says(func() string { return "waits for a caller of " + portLabel(name) })
	d, err = m.p.ask(wireup.Message{Kind: wireup.KindTake, Meeting: &wireup.Meeting{Key: key[:]}}, name)
	if err == nil {
		m.took(stepQueue, func() string { return fmt.Sprintf("the node kept a caller for %v", d.msg.Meeting.Waited) })
		m.took(stepTake, func() string { return fmt.Sprintf("takes the caller, who came by %s", d.msg.Transport) })
	}
	return name, d, m.because(stepTake.fault(err))
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
// known. bad is why it cannot be made. Who has trouble of its own goes on with the
// others, who wait for it, and tells them when they ask.
func (m *meeting) acquaint(bad error) error {
	own := m.p.catalogue(m.c.Comm.Group())
	text, err := own.describe()
	m.ails(errorsFirst(bad, err))
	if text, err = m.exchange(stepWorlds, text, nil); err != nil {
		return err
	}
	m.ails(m.learn(text))
	if text, err = m.exchange(stepGroups, own.group(), nil); err != nil {
		return err
	}
	for _, f := range []func() error{func() error { return m.read(text) }, m.make, m.arrive} {
		if m.bad == nil {
			m.ails(f())
		}
	}
	m.gather()
	_, err = m.exchange(stepSync, nil, nil)
	if err = errorsFirst(m.bad, err); err == nil {
		m.took(stepBarrier, func() string { return "all members of both sides have it" })
	}
	return err
}

// ails notes why this proc cannot have the communicator.
func (m *meeting) ails(err error) { m.bad = errorsFirst(m.bad, err) }

// agree is about context IDs: within each side, and then between the two.
func (m *meeting) agree() error {
	x := m.c.agreement(m.c.ordinal())
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
	return errorsFirst(err, bad)
}

// make makes the communicator.
func (m *meeting) make() (err error) {
	m.made, err = m.c.adopt(comm.Spec{Group: m.c.Comm.Group(), Masters: m.c.Masters(), Remote: m.remote}, m.context)
	return stepMake.fault(err)
}

// arrive waits until the links to the others can be used.
func (m *meeting) arrive() error {
	if err := m.p.arrive(m.remote); err != nil {
		return stepMake.fault(err)
	}
	m.took(stepMake, func() string {
		return fmt.Sprintf("the communicator is made, context %d, %d members here and %d there", m.context, m.c.Size(), m.remote.Size())
	})
	return nil
}

// confirm is next for the two sides of a meeting.
func (m *meeting) confirm(v *verdict) error {
	k := m.p.contexts.Confirm(m.me == 0)
	for {
		x := m.c.agreement(m.c.ordinal())
		x.wide = false
		x.begin(k.Say(), func() {})
		x.wait()
		mine := make([]byte, comm.ProposalSize)
		x.all.Put(mine)
		text, err := m.exchange(stepSizes, mine, x.err)
		var theirs comm.Proposal
		if err == nil {
			theirs, err = comm.ReadProposal(text)
		}
		if err != nil {
			k.Withdraw()
			return err
		}
		id, over, err := k.Hear(x.all.With(theirs))
		if over {
			v.Private = id
			return err
		}
	}
}
