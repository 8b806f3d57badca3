package script

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/core/mpi"
)

// Recover is a program in which two worlds meet that go on without lost procs, procs of both are
// lost, and those that are left go on with each other. The program has no other steps.
type Recover struct {
	Steps   int  // of communication, until one of them fails
	Revokes bool // who sees a step fail revokes the communicator
	Begins  bool // agreements and shrinks are begun, several at a time
	Acks    bool // losses are acknowledged
	Parts   bool // who knows of a loss tries to disconnect, and frees the communicator while it is shrunk; Unseen is while a disconnects
	Deaths  bool // procs die as soon as they have begun an agreement, or have returned
	// Unseen loses world b as a whole, while each proc of a waits for one of b to which it has never
	// sent anything.
	Unseen bool
	// Silent, if Unseen, has but one of the links of each lost proc end. Nothing more is heard of the
	// others.
	Silent bool
}

// Worlds of a Recover.
const (
	opens = iota
	calls
)

// maxRecoverSteps bounds Steps: flags have a bit for each.
const maxRecoverSteps = 16

func (s Recover) check(p *Program) error {
	switch {
	case len(p.Worlds) != 2 || len(p.Steps) != 1 || len(p.Messages) > 0:
		return errors.New("it is the only step of a program of two worlds")
	case s.Steps < 1 || s.Steps > maxRecoverSteps:
		return fmt.Errorf("it has 1 to %d steps", maxRecoverSteps)
	case s.Silent && !s.Unseen:
		return errors.New("somebody who lives has to see a link end")
	}
	return nil
}

// Recover returns the program's step about losses, if it has one.
func (p *Program) Recover() (Recover, bool) {
	if len(p.Steps) == 0 {
		return Recover{}, false
	}
	s, ok := p.Steps[0].(Recover)
	return s, ok
}

// GenerateRecover draws such a program of up to so many procs.
func GenerateRecover(t *rapid.T, most int) *Program {
	d, p := &Draws{t}, &Program{}
	for w := range 2 {
		n := d.Between(1, max(1, min(4, most-p.Procs-1+w)))
		p.Worlds, p.Procs = append(p.Worlds, n), p.Procs+n
	}
	p.Steps = []Step{Recover{
		Steps: d.Between(1, 9), Revokes: d.OneIn(2), Begins: d.OneIn(3), Acks: d.OneIn(2), Parts: d.OneIn(2), Deaths: d.OneIn(2),
	}}
	if d.OneIn(4) {
		p.Steps = []Step{Recover{Steps: 1, Unseen: true, Silent: d.OneIn(2), Parts: d.OneIn(3)}}
	}
	return p
}

type recovering struct {
	meeter
	s Recover
}

func (m *recovering) live() error {
	m.log(m.s)
	world, rank := m.comms.worldOf(m.me)
	inter, err := m.couple(world, rank)
	if err != nil {
		return failed(err)
	}
	if m.s.Unseen {
		return m.unseen(inter, world, rank)
	}
	if err := m.across(inter, world); err != nil {
		return err
	}
	all, err := inter.Merge(world == calls)
	if err == nil {
		err = all.Barrier()
	}
	if err != nil {
		return failed(err)
	}
	r := &Recovery{Recover: m.s, Pause: m.env.Pause, MayDie: m.mayDie, Note: func(said string) { m.rec.Said = append(m.rec.Said, said) }}
	m.among.Shared().Met()
	if err := inter.Free(); err != nil {
		return failed(err)
	}
	last, err := r.RunUntilFailure(all)
	if err != nil {
		return err
	}
	return m.linksOf(last)
}

// couple makes an intercommunicator of both worlds.
func (m *recovering) couple(world, rank int) (*mpi.Comm, error) {
	ports := m.among.Shared().Ports
	if world == opens && rank == 0 {
		name, err := m.among.MPI().OpenPort(nil)
		if err != nil {
			return nil, err
		}
		ports[""] = name
	}
	for n := 0; ports[""] == ""; n++ {
		m.idle(n)
	}
	if world == opens {
		return m.env.World().Accept(ports[""], nil, 0)
	}
	return m.env.World().Connect(ports[""], nil, 0)
}

// across has both sides agree, of which each gets the flags of the other one.
func (m *recovering) across(inter *mpi.Comm, world int) error {
	got, err := inter.Agree(^(1 << world))
	if want := int32(^(1 << (1 - world))); err == nil && got != want {
		return mismatch("flags %x of the other side, not %x", got, want)
	}
	return failed(err)
}

// unseen waits for a proc of the other world, which is lost as a whole, and then goes on with its
// own.
func (m *recovering) unseen(inter *mpi.Comm, world, rank int) error {
	m.among.Shared().Met()
	if world == calls {
		_, err := mpi.Recv(m.env.World(), make([]int64, 1), rank, 0) // from itself, which sends nothing
		return mismatch("it was to be lost, and has received: %v", err)
	}
	n, err := inter.RemoteSize()
	if err != nil {
		return failed(err)
	}
	if m.s.Parts {
		err = inter.Disconnect()
	} else {
		_, err = mpi.Recv(inter, make([]int64, 1), rank%n, 0)
	}
	if !errors.Is(err, mpi.ErrProcFailed) {
		return mismatch("a wait for a lost proc: %v", err)
	}
	if _, err := inter.Agree(1); !errors.Is(err, mpi.ErrProcFailed) {
		return mismatch("an agreement without the lost ones: %v", err)
	}
	if _, err := inter.Shrink(); !errors.Is(err, mpi.ErrProcFailed) {
		return mismatch("a shrink to one side: %v", err)
	}
	if err := inter.Disconnect(); err == nil || excused(err) != nil {
		return mismatch("a disconnect from a lost world: %v", err)
	}
	if err := errors.Join(inter.Free(), m.env.World().Barrier()); err != nil {
		return failed(err)
	}
	if err := m.linksOf(m.env.World()); err != nil {
		return err
	}
	if n := m.among.MPI().Remains().Worlds; n != 1 { // which only a disconnect that succeeds may change
		return mismatch("%d worlds are known, not the one that was met", n)
	}
	return nil
}

// linksOf waits until this proc has no links to procs of the other world but to members of c.
func (m *recovering) linksOf(c *mpi.Comm) error {
	g, err := c.Group()
	if err != nil {
		return failed(err)
	}
	own, err := m.env.World().Group()
	if err != nil {
		return failed(err)
	}
	others, err := g.Difference(own)
	if err != nil {
		return failed(err)
	}
	most, x, begun := others.Size(), m.among.MPI(), m.among.Now()
	for n := 0; x.Remains().Links > most; n++ {
		if m.among.Now()-begun > settling {
			return fmt.Errorf("%w: %d links to procs of the other world, of which %d are members", ErrLeak, x.Remains().Links, most)
		}
		m.idle(n)
	}
	return nil
}

func (m *recovering) mayDie() {
	if m.s.Deaths && m.among.Between(0, 8) == 0 {
		m.among.Shared().Die(m.me)
	}
}

// Recovery is how a proc goes on when others are lost.
type Recovery struct {
	Recover
	Pause  func(time.Duration)
	MayDie func()            // is called where the death of this proc does most harm: others may have heard of what it has, or not
	Note   func(said string) // takes each result that the others must have, too
}

// excused lets errors pass that losses and what procs do about them explain.
func excused(err error) error {
	if errors.Is(err, mpi.ErrRevoked) || errors.Is(err, mpi.ErrProcFailed) {
		return nil
	}
	return failed(err)
}

// RunUntilFailure does a step after the other with the members of c until one of them fails; then
// they agree whether all are done, and if not, how many steps all have done, in a communicator of
// those that are left. It returns the last one.
func (r *Recovery) RunUntilFailure(c *mpi.Comm) (*mpi.Comm, error) {
	done := 0
	for {
		var wrong error
		for ; done < r.Steps; done++ {
			if wrong = r.step(c, done); wrong != nil {
				break
			}
		}
		if err := excused(wrong); err != nil {
			return nil, err
		}
		if wrong != nil && r.Revokes {
			if err := c.Revoke(); err != nil {
				return nil, failed(err)
			}
		}
		all, err := r.agree(c, int32(1)<<done-1)
		r.MayDie()
		r.Note(fmt.Sprintf("%d members, steps %x, %t", c.Size(), all, err == nil))
		if excused(err) != nil {
			return nil, failed(err)
		}
		if err == nil && all == int32(1)<<r.Steps-1 {
			return c, nil
		}
		for done = 0; all&1 != 0; all >>= 1 {
			done++
		}
		lost := errors.Is(err, mpi.ErrProcFailed)
		d, err := r.shrink(c, lost)
		if err != nil {
			return nil, err
		}
		if lost && d.Size() == c.Size() {
			return nil, mismatch("members are lost, and %d of %d are left", d.Size(), c.Size())
		}
		c = d
		r.MayDie()
		r.Note(fmt.Sprintf("%d members left", c.Size()))
	}
}

// agree calls Agree or, with r.Begins, Iagree while another agreement is under way.
func (r *Recovery) agree(c *mpi.Comm, flags int32) (int32, error) {
	if !r.Begins {
		all, err := c.Agree(flags)
		if err != nil && r.Acks {
			if err := c.FailureAck(); err != nil {
				return 0, failed(err)
			}
			return c.Agree(all)
		}
		return all, err
	}
	ones, between := int32(-1), flags
	a, err := c.Iagree(&ones)
	if err != nil {
		return 0, err
	}
	b, err := c.Iagree(&between)
	if err != nil {
		return 0, err
	}
	r.MayDie()
	_, err = b.Wait()
	if _, err := a.Wait(); excused(err) != nil || ones != -1 {
		return 0, mismatch("the agreement before has %x: %v", ones, err)
	}
	return between, err
}

func (r *Recovery) shrink(c *mpi.Comm, lost bool) (d *mpi.Comm, err error) {
	size, parts := c.Size(), r.Parts && lost
	if parts { // a member is lost that has not come here, so it cannot succeed
		if err := c.Disconnect(); err == nil || excused(err) != nil {
			return nil, mismatch("a disconnect from lost members: %v", err)
		}
	}
	if r.Begins || parts {
		var q mpi.Request
		if d, q, err = c.Ishrink(); err == nil {
			if parts {
				err = c.Free()
			}
			_, wrong := q.Wait()
			err = errors.Join(err, wrong)
		}
	} else {
		d, err = c.Shrink()
	}
	if err != nil {
		return nil, fmt.Errorf("shrink: %w", failed(err))
	}
	if size < d.Size() {
		return nil, mismatch("%d of %d are left", d.Size(), size)
	}
	return d, nil
}

// step is some communication of all members, whose result each of them checks. Without revoke,
// every member must take part in every operation: nobody else would learn of a failure.
func (r *Recovery) step(c *mpi.Comm, number int) error {
	me, n := c.Rank(), c.Size()
	r.Pause(time.Duration(me*number%4) * time.Millisecond)
	in, out := make([]int64, 1+number*150), make([]int64, 1+number*150)
	in[number] = 1
	switch {
	case number%3 == 0:
		if err := mpi.Allreduce(c, in, out, mpi.Sum); err != nil {
			return err
		}
		if out[number] != int64(n) {
			return mismatch("step %d: %d members have said 1, of %d", number, out[number], n)
		}
	case number%3 == 1 && r.Revokes:
		if _, err := mpi.Sendrecv(c, in, (me+1)%n, number, out, (me+n-1)%n, number); err != nil {
			return err
		}
		if out[number] != 1 {
			return mismatch("step %d: member %d has sent %v", number, (me+n-1)%n, out[number])
		}
	default:
		return c.Barrier()
	}
	return nil
}

// Agreed checks that all procs that are left have had the same results. left is by proc.
func Agreed(records []*Record, left []bool) error {
	var first *Record
	for i, rec := range records {
		switch {
		case !left[i]:
		case first == nil:
			first = rec
		case !slices.Equal(first.Said, rec.Said):
			return mismatch("proc %d: %q, proc %d %q", rec.Rank, rec.Said, first.Rank, first.Said)
		}
	}
	return nil
}
