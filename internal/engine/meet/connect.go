package meet

import (
	"cmp"
	"fmt"
	"time"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/construct"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Step is a step of connecting, the same on both sides. Only the two roots exchange messages
// between the sides. Errors name the step, and the messages between the roots have it as their tag.
type Step int

// The steps. The first is the step of OpenPort.
const (
	stepOpen      Step = iota
	stepDial           // the connecting root finds the port's address,
	stepGreet          // and proves that it has the port's key;
	stepQueue          // the other node keeps the connection until
	stepAccept         // the accepting root accepts it.
	stepTemporary      // Both roots have a temporary link.
	stepCollect        // Each side agrees on context IDs, and collects the worlds of its members;
	StepSizes          // the roots exchange the sizes of the next messages,
	StepTellSizes      // and send them to their members.
	StepWorlds         // The same for descriptions of the worlds,
	StepTellWorlds
	StepGroups // and for the groups.
	StepTellGroups
	StepMake    // The communicator is made;
	StepSync    // the roots know that all their members have it,
	StepBarrier // and report that to their members,
	stepClose   // and the temporary link is closed.
)

func (s Step) fault(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("step %d of connecting: %w", s, err)
}

// Meeting is one side's part in connecting two groups (MPI-4.1, 11.9). Its process is locked.
type Meeting struct {
	P          *proc.Process
	C          *proc.Comm
	Root       int
	Steps      *proc.TraceSteps
	seq        uint32             // number of the constructor, among those of the communicator
	near       construct.Exchange // with the members of c
	tree       comm.Tree
	me         int        // position in the tree
	peer       *Remote    // at the root, while it has a temporary link; else nil
	remoteRoot remoteRoot // at the root: the other side's root

	late      *deadline // the time limit of the whole meeting, or nil
	accepting uint64    // the number of the accept that waits at the node; 0: none

	bad     error // why this member cannot make the communicator; it continues, since the others wait for it
	Context wire.ContextID
	theirs  extent
	worlds  []*dynamic.Description // of the other side
	remote  *comm.Group
	made    *proc.Comm
}

// Connect connects or accepts (MPI-4.1, 11.9): kind is proc.ToConnect or proc.ToAccept.
func Connect(c *proc.Comm, port string, info *proc.Info, root int, kind string) (*proc.Comm, error) {
	if err := mayConnect(c, root, "Connect and Accept"); err != nil {
		return nil, err
	}
	p := c.Process()
	p.Lock()
	defer p.Unlock()
	if err := mayMeetTogether(c); err != nil {
		return nil, err
	}
	m := newMeeting(c, root)
	defer p.Disconnects.EndMeeting()
	m.show(kind)
	var err error
	if c.Rank() == root {
		err = m.reach(port, info, kind == proc.ToConnect)
	}
	return m.complete(err)
}

type remoteRoot interface {
	// swap sends body, or the error bad instead, and returns the other side's message.
	swap(s Step, body []byte, bad error) ([]byte, error)
}

func mayConnect(c *proc.Comm, root int, what string) error {
	if err := construct.CheckIntra(c); err != nil {
		return err
	}
	if _, ok := c.Proc(root); !ok {
		return fmt.Errorf("%w: %d, the communicator has 0 to %d", coll.ErrRoot, root, c.Size()-1)
	}
	if !construct.AllRunImpi(c) {
		return proc.ForeignError(what)
	}
	return nil
}

func newMeeting(c *proc.Comm, root int) *Meeting {
	p := c.Process()
	p.Disconnects.BeginMeeting()
	return meeting(c, root)
}

func meeting(c *proc.Comm, root int) *Meeting {
	m := &Meeting{P: c.Process(), C: c, Root: root, seq: c.Ordinal(), tree: comm.NewTree(c.Masters())}
	m.near = construct.NewExchange(c, construct.InOrderBase, construct.WireTag(m.seq))
	m.me = m.tree.Position(c.Rank())
	return m
}

func (m *Meeting) show(kind string) {
	m.Steps = m.P.Trace.Procedure(kind)
	m.Steps.TraceText(func() string {
		return fmt.Sprintf("begins, rank %d of %d, root %d, context %d", m.C.Rank(), m.C.Size(), m.Root, m.C.Context())
	})
}

// TraceStep records in the trace that this proc has taken a step.
func (m *Meeting) TraceStep(s Step, what func() string) { m.Steps.TraceStep(int(s), what) }

// label sets the tag of messages to the members of c to that of the step, once all members are
// known to connect. Until then they look like those of other constructors, so that a member which
// calls another one is detected.
func (m *Meeting) label(s Step) {
	if s > stepCollect {
		m.near = construct.NewExchange(m.C, construct.ByStepBase, StepTag(m.seq, s))
	}
}

// StepTag returns the tag of a step's messages within a side, for constructor number seq.
func StepTag(seq uint32, s Step) wire.Tag { return construct.WireTag(seq<<5) | wire.Tag(s) }

// complete takes the steps after the roots have a link, and ends that link. bad is why they have
// none.
func (m *Meeting) complete(bad error) (*proc.Comm, error) {
	err := m.hold(bad)
	if m.peer != nil {
		m.peer.leave()
		m.TraceStep(stepClose, func() string { return "the temporary link is closed" })
	}
	if m.late != nil {
		m.late.stop()
	}
	err = m.settle(err)
	return m.made, err
}

func (m *Meeting) settle(err error) error {
	if err == nil {
		m.Steps.TraceEnd(nil, m.made)
		return nil
	}
	m.Steps.TraceEnd(err, nil)
	var met []*proc.ConnectedWorld
	for _, d := range m.worlds {
		if w := m.P.Worlds.Known(d.World); w != nil {
			met = append(met, w)
		}
	}
	if m.made != nil {
		m.made.State().Life.Store(proc.Freed)
		m.P.Worlds.Use(m.made.Comm, -1)
		m.P.Comms.Unregister(m.made.Comm)
		construct.Release(m.P, m.made.Context())
		m.made = nil
	}
	m.P.Disconnects.DisconnectAll(met)
	return err
}

// connectLimit is the time limit of a connect if the program sets none, and of the first message on
// an accepted connection.
const connectLimit = time.Minute

// hold takes the steps after the roots have a link, up to the end. bad is why they have none.
func (m *Meeting) hold(bad error) error {
	if _, err := m.share(stepTemporary, nil, bad); err != nil {
		return err
	}
	if m.peer == nil {
		m.TraceStep(stepTemporary, func() string { return fmt.Sprintf("the root, rank %d, has a temporary link", m.Root) })
	}
	if err := m.agree(); err != nil {
		return err
	}
	return m.acquaint(nil)
}

// acquaint exchanges the worlds and groups of both sides and makes the communicator, whose context
// IDs are known. bad is why it cannot be made. A member with an error of its own goes on, as the
// others wait for it, and tells them in the next exchange.
func (m *Meeting) acquaint(bad error) error {
	own := newCatalogue(m.P, m.C.Comm.Group())
	text, err := own.describe()
	m.recordError(cmp.Or(bad, err))
	if text, err = m.exchange(StepWorlds, text, nil); err != nil {
		return err
	}
	m.recordError(m.learn(text))
	if text, err = m.exchange(StepGroups, own.group(), nil); err != nil {
		return err
	}
	for _, f := range []func() error{func() error { return m.read(text) }, m.make, m.arrive} {
		if m.bad == nil {
			m.recordError(f())
		}
	}
	m.gather()
	_, err = m.exchange(StepSync, nil, nil)
	if err = cmp.Or(m.bad, err); err == nil {
		m.TraceStep(StepBarrier, func() string { return "all members of both sides have it" })
	}
	return err
}

func (m *Meeting) recordError(err error) { m.bad = cmp.Or(m.bad, err) }

func (m *Meeting) agree() error {
	x := construct.Agreement(m.C, m.C.Ordinal())
	x.Wide = false // confirming has to wait for the other side
	x.Propose(collective.ConstructorConnect, nil, func() {})
	x.Wait()
	err := m.sizes(x.All, x.Err)
	v := construct.AssemblyResult{Proposal: x.All.Combine(m.theirs.Proposal)}
	if err == nil && construct.NeedsConfirmation(&v.Proposal, 0) {
		err = m.confirm(&v)
	}
	m.Context, err = construct.Conclude(m.P, x.Mine, v, comm.InterContexts, nil, err)
	return stepCollect.fault(err)
}

// sizes exchanges the sizes of the next messages, and the proposals of the two sides.
func (m *Meeting) sizes(all comm.Proposal, bad error) error {
	own := newCatalogue(m.P, m.C.Comm.Group())
	mine := extent{Proposal: all, members: m.C.Size(), worlds: len(own.worlds)}
	if bad == nil {
		m.TraceStep(stepCollect, func() string { return "this side agrees: " + mine.String() })
	}
	text, err := m.exchange(StepSizes, mine.append(nil), bad)
	if err == nil {
		m.theirs, err = readExtent(text)
	}
	if err == nil {
		m.TraceStep(StepTellSizes, func() string { return "known to all members: the other side has " + m.theirs.String() })
	}
	return cmp.Or(err, bad)
}

func (m *Meeting) make() (err error) {
	m.made, err = construct.NewInheriting(m.C, comm.Spec{Group: m.C.Comm.Group(), Masters: m.C.Masters(), Remote: m.remote}, m.Context)
	return StepMake.fault(err)
}

// arrive waits until the links to members of the other side may be used.
func (m *Meeting) arrive() error {
	if err := m.P.Disconnects.AwaitClosing(m.remote); err != nil {
		return StepMake.fault(err)
	}
	m.TraceStep(StepMake, func() string {
		return fmt.Sprintf("the communicator is made, context %d, %d members here and %d there", m.Context, m.C.Size(), m.remote.Size())
	})
	return nil
}

// confirm has both sides confirm the private context ID, if there is one.
func (m *Meeting) confirm(v *construct.AssemblyResult) error {
	k := m.P.Comms.Contexts.Confirm(m.me == 0)
	for {
		x := construct.Agreement(m.C, m.C.Ordinal())
		x.Wide = false
		x.Begin(k.Propose(), func() {})
		x.Wait()
		mine := make([]byte, comm.ProposalSize)
		x.All.Put(mine)
		text, err := m.exchange(StepSizes, mine, x.Err)
		var theirs comm.Proposal
		if err == nil {
			theirs, err = comm.ReadProposal(text)
		}
		if err != nil {
			k.Withdraw()
			return err
		}
		id, over, err := k.Decide(x.All.Combine(theirs))
		if over {
			v.Private = id
			return err
		}
	}
}
