package construct

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/openimpi/impi/core/agree"
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/proc"
)

// recovery is what the members of communicators say to each other about them, and agree on, in a
// job that goes on without procs that are lost. It is a proc.Recovery.
type recovery struct {
	p     *proc.Process
	deals map[wire.ContextID]*deals      // by the communicator's context, also after it was freed
	early map[wire.ContextID][]earlyWord // words about communicators that are not made here yet
	fired map[message.Peer]bool          // procs of this job that were told that the others continue without them
}

// earlyWord is a word about a communicator that is not made yet.
type earlyWord struct {
	from message.Peer
	text []byte
}

// A word begins with its kind and the context of its communicator, which is 0 for a word about
// losses.
const (
	wordRevoke byte = iota
	wordAgree
	wordLost
	wordHead = 1 + 8
)

func headOf(kind byte, context wire.ContextID) []byte {
	return binary.BigEndian.AppendUint64([]byte{kind}, uint64(context))
}

// Recover makes a process handle the others' words about communicators, if its job continues
// without procs that are lost.
func Recover(p *proc.Process) {
	if p.Survival != nil {
		p.Survival.Recovery = &recovery{p: p, deals: make(map[wire.ContextID]*deals), early: make(map[wire.ContextID][]earlyWord), fired: make(map[message.Peer]bool)}
	}
}

type deals struct {
	p       *proc.Process
	context wire.ContextID
	group   *comm.Group // of both sides, if there are two
	second  bool        // the own side is the second side
	member  *agree.Member
	open    map[uint64]*deal // deals of this proc, by number
}

// NoticeReceived implements proc.Recovery. It ignores a notice about a communicator that was freed.
func (r *recovery) NoticeReceived(from message.Peer, text []byte) {
	if len(text) < wordHead {
		return
	}
	if text[0] == wordLost {
		r.heardOfLoss(text)
		return
	}
	context := wire.ContextID(binary.BigEndian.Uint64(text[1:]))
	c, freed := r.p.Survival.Comm(context)
	switch d := r.deals[context]; {
	case c == nil && d == nil && !freed:
		r.early[context] = append(r.early[context], earlyWord{from, text})
	case text[0] == wordRevoke:
		r.revoke(c)
	case text[0] == wordAgree && (c != nil || d != nil):
		if d == nil {
			d = r.dealsOf(c)
		}
		d.hear(from, text[wordHead:])
	}
}

// Made implements proc.Recovery. It handles the notices about c that came before c was made here.
func (r *recovery) Made(c *proc.Comm) {
	words := r.early[c.Context()]
	delete(r.early, c.Context())
	for _, w := range words {
		r.NoticeReceived(w.from, w.text)
	}
	r.scope(c, len(r.p.Survival.Lost()))
}

// Lost implements proc.Recovery.
func (r *recovery) Lost(peer message.Peer) {
	for _, context := range slices.Sorted(maps.Keys(r.deals)) { // so that the same happens whenever the simulator repeats it
		d := r.deals[context]
		if rank, ok := d.group.Rank(comm.Proc(peer)); ok {
			d.check(d.member.Failed(rank))
			d.goOn()
		}
	}
	r.scopes()
}

// Waits implements proc.Recovery.
func (r *recovery) Waits(wants func(of message.Peer, context wire.ContextID)) {
	for _, context := range slices.Sorted(maps.Keys(r.deals)) {
		d := r.deals[context]
		for _, number := range slices.Sorted(maps.Keys(d.open)) {
			for _, rank := range d.member.Awaits(number) {
				x, _ := d.group.At(rank)
				wants(message.Peer(x), context)
			}
		}
	}
}

// revoke revokes a communicator, and has each other member do the same. Each member tells all
// others once: even if some are lost meanwhile, all hear of it if one that lives does.
func (r *recovery) revoke(c *proc.Comm) {
	if c == nil || c.State().Revoked.Swap(true) {
		return
	}
	why := proc.RevokedError(c)
	for _, x := range []*proc.Comm{c, c.State().Local} {
		if x != nil {
			r.p.Eng.FailContext(x.Context(), why)
			r.p.Eng.FailContext(x.CollectiveContext(), why)
		}
	}
	if r.p.FastPath != nil {
		r.p.FastPath.Memory.Forget()
	}
	for _, g := range []*comm.Group{c.Comm.Group(), c.Comm.Remote()} {
		if g == nil {
			continue
		}
		for x := range g.All() {
			if wire.WorldRank(x) != r.p.Job.Rank && r.p.Survival.ReceivesNotices(message.Peer(x)) {
				r.p.Survival.SendNotice(message.Peer(x), headOf(wordRevoke, c.Context()))
			}
		}
	}
	r.p.WakeAll()
}

// everybody returns the members of a communicator in an order that is the same at all of them. Of
// an intercommunicator's groups, the one whose first member comes first is first; second says that
// this is not the own one.
func everybody(c *proc.Comm) (all *comm.Group, second bool) {
	ours, theirs := c.Comm.Group(), c.Remote()
	if theirs == nil {
		return ours, false
	}
	a, _ := ours.At(0)
	b, _ := theirs.At(0)
	if second = c.Process().Worlds.Before(b, a); second {
		return theirs.Union(ours), true
	}
	return ours.Union(theirs), false
}

func (r *recovery) dealsOf(c *proc.Comm) *deals {
	if d := r.deals[c.Context()]; d != nil {
		return d
	}
	d := &deals{p: r.p, context: c.Context(), open: make(map[uint64]*deal)}
	d.group, d.second = everybody(c)
	me, _ := d.group.Rank(comm.Proc(r.p.Job.Rank))
	cfg := agree.Config{Size: d.group.Size(), Me: me}
	for x := range d.group.All() { // procs number the sites of other worlds differently
		cfg.Sites = append(cfg.Sites, int(r.p.Worlds.Clients().Of(x)))
	}
	var err error
	if d.member, err = agree.New(cfg); err != nil {
		panic(err) // not with the group of a communicator
	}
	r.deals[c.Context()] = d
	for _, peer := range r.p.Survival.Lost() {
		if rank, ok := d.group.Rank(comm.Proc(peer)); ok {
			d.check(d.member.Failed(rank))
		}
	}
	return d
}

// check ends this proc by an error of the agreements: a member does not keep to them, or the others
// have gone on without this one.
func (d *deals) check(err error) {
	switch {
	case errors.Is(err, agree.ErrExcluded):
		d.p.Survival.Excluded(err.Error())
	case err != nil:
		d.p.SetFailed(fmt.Errorf("agreements of the communicator of context %d: %w", d.context, err))
	}
}

func (d *deals) hear(from message.Peer, text []byte) {
	if rank, ok := d.group.Rank(comm.Proc(from)); ok {
		d.check(d.member.Receive(rank, text))
		d.goOn()
	}
}

// goOn sends the messages and completes the agreements that result from a call of the member.
func (d *deals) goOn() {
	for m, ok := d.member.Next(); ok; m, ok = d.member.Next() {
		x, _ := d.group.At(m.To)
		if !d.p.Survival.ReceivesNotices(message.Peer(x)) {
			continue // its job is no longer connected
		}
		d.p.Survival.SendNotice(message.Peer(x), append(headOf(wordAgree, d.context), m.Data...))
	}
	for x, ok := d.member.Decided(); ok; x, ok = d.member.Decided() {
		for rank := range x.Failed.All() {
			d.check(d.member.Failed(rank))
		}
		if o := d.open[x.Sequence]; o != nil {
			delete(d.open, x.Sequence)
			o.done, o.decision = true, x
			o.err = o.decided()
			d.p.Worlds.Use(o.c.Comm, -1)
			d.p.WakeAll()
		}
	}
}

// deal is an agreement of this proc, which is the operation of a request.
type deal struct {
	proc.Uncancellable
	c        *proc.Comm
	of       *deals
	done     bool
	decision agree.Decision
	decided  func() error // is called once the decision is known
	err      error
}

// begin begins an agreement, by which decided is called. The process is locked.
func begin(c *proc.Comm, x agree.Contribution, decided func(d *deal) error) (*deal, error) {
	p := c.Process()
	r, ok := p.Survival.Recovery.(*recovery)
	switch {
	case !ok:
		return nil, proc.ErrNoSurvival
	case !r.p.Survival.AllReceiveNotices(c):
		return nil, fmt.Errorf("%w: %s has members of a job without survive = true", proc.ErrNoSurvival, c.Label())
	}
	d := r.dealsOf(c)
	o := &deal{c: c, of: d}
	o.decided = func() error { return decided(o) }
	x.Acked = acknowledged(c, d.group)
	number, err := d.member.Begin(x)
	if err != nil {
		return nil, err
	}
	d.open[number] = o
	p.Worlds.Use(c.Comm, 1) // it may be freed meanwhile, and losses still matter
	d.goOn()
	return o, nil
}

// acknowledged are the ranks of the lost members that the program knows of.
func acknowledged(c *proc.Comm, among *comm.Group) agree.Set {
	var ranks []int
	for _, peer := range c.Process().Survival.Lost()[:c.State().Acknowledged] {
		if rank, ok := among.Rank(comm.Proc(peer)); ok {
			ranks = append(ranks, rank)
		}
	}
	return agree.SetOf(ranks...)
}

// Done implements proc's operation.
func (o *deal) Done() bool { return o.done }

// Status implements proc's operation.
func (o *deal) Status() (proc.Status, error) { return proc.EmptyStatus, o.err }

// Finish implements proc's operation.
func (o *deal) Finish() (proc.Status, error) {
	o.Gen++
	if !o.done {
		return proc.EmptyStatus, o.c.Process().Failure
	}
	return proc.EmptyStatus, o.err
}

func (o *deal) await() error {
	p := o.c.Process()
	for !o.done && p.Failure == nil {
		p.Account.AwaitFor(proc.ForCollective, message.NoPeer)
	}
	_, err := o.Finish()
	return err
}
