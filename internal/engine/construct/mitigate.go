package construct

import (
	"fmt"
	"math"

	"github.com/openimpi/impi/core/agree"
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/internal/engine/proc"
)

// The functions of User-Level Failure Mitigation: they handle communicators some of whose members
// are lost, in a job that continues without them (the MPI Forum's proposal). All of them are local
// except Shrink, Agree and their nonblocking forms.

// mitigates returns an error if c is nil, freed, or of a job that ends with its first lost proc. It
// may be revoked.
func mitigates(c *proc.Comm) error {
	if err := c.Usable(); err != nil {
		return err
	}
	if c.Process().Survival == nil {
		return proc.ErrNoSurvival
	}
	return nil
}

func Revoke(c *proc.Comm) error {
	if err := mitigates(c); err != nil {
		return err
	}
	p := c.Process()
	p.Lock()
	defer p.Unlock()
	r, ok := p.Survival.Recovery.(*recovery)
	if !ok {
		return proc.ErrNoSurvival
	}
	r.revoke(c)
	return nil
}

func IsRevoked(c *proc.Comm) (bool, error) {
	if err := c.Usable(); err != nil {
		return false, err
	}
	return c.State().Revoked.Load(), nil
}

func FailureAck(c *proc.Comm) error {
	if err := mitigates(c); err != nil {
		return err
	}
	p := c.Process()
	p.Lock()
	defer p.Unlock()
	c.State().Acknowledged = len(p.Survival.Lost())
	return nil
}

func FailureGetAcked(c *proc.Comm) (*proc.Group, error) {
	if err := mitigates(c); err != nil {
		return nil, err
	}
	p := c.Process()
	p.Lock()
	defer p.Unlock()
	return lostOf(c, c.State().Acknowledged)
}

func GetFailed(c *proc.Comm) (*proc.Group, error) {
	if err := c.Usable(); err != nil {
		return nil, err
	}
	p := c.Process()
	if p.Survival == nil {
		return proc.GroupEmpty, nil
	}
	p.Lock()
	defer p.Unlock()
	p.Test() // handle the node's messages first
	return lostOf(c, len(p.Survival.Lost()))
}

// lostOf returns the group of those members of c that are among the first n procs that this one
// knows to be lost, in that order.
func lostOf(c *proc.Comm, n int) (*proc.Group, error) {
	var lost []comm.Proc
	for _, peer := range c.Process().Survival.Lost()[:n] {
		if _, ok := c.Partners().Rank(comm.Proc(peer)); ok {
			lost = append(lost, comm.Proc(peer))
		} else if _, ok := c.Comm.Group().Rank(comm.Proc(peer)); ok {
			lost = append(lost, comm.Proc(peer))
		}
	}
	g, err := comm.GroupOf(lost)
	if err != nil {
		return nil, err
	}
	return c.Process().NewGroup(g), nil
}

func AckFailed(c *proc.Comm, most int) (acked int, err error) {
	if err := c.Usable(); err != nil {
		return 0, err
	}
	if most < 0 {
		return 0, fmt.Errorf("%w: %d members to acknowledge", proc.ErrArg, most)
	}
	if err := mitigates(c); err != nil {
		return 0, err
	}
	p := c.Process()
	p.Lock()
	defer p.Unlock()
	for i := range p.Survival.Lost() {
		g, err := lostOf(c, i+1)
		if err != nil {
			return 0, err
		}
		if g.Size() > most {
			break
		}
		c.State().Acknowledged = max(c.State().Acknowledged, i+1)
	}
	g, err := lostOf(c, c.State().Acknowledged)
	if err != nil {
		return 0, err
	}
	return g.Size(), nil
}

func Agree(c *proc.Comm, flag int32) (all int32, err error) {
	if err := mitigates(c); err != nil {
		return flag, err
	}
	p := c.Process()
	p.Lock()
	defer p.Unlock()
	o, err := agreeOn(c, flag, &all)
	if err != nil {
		return flag, err
	}
	err = o.await()
	return all, err
}

func Iagree(c *proc.Comm, fn string, flag *int32) (proc.Request, error) {
	if err := c.Usable(); err != nil {
		return proc.Request{}, err
	}
	if flag == nil {
		return proc.Request{}, fmt.Errorf("%w: no place for the flag", proc.ErrArg)
	}
	if err := mitigates(c); err != nil {
		return proc.Request{}, err
	}
	p := c.Process()
	p.Lock()
	defer p.Unlock()
	o, err := agreeOn(c, *flag, flag)
	if err != nil {
		return proc.Request{}, err
	}
	return p.NewOperationRequest(c, fn, o), nil
}

// agreeOn begins an agreement whose result goes to all. A member that some have not acknowledged
// makes it an error for everybody, and the result is known all the same.
//
// Of an intercommunicator each side gets the flags of the other one: those of the side whose
// members come second are the upper half of what is agreed on.
func agreeOn(c *proc.Comm, flag int32, all *int32) (*deal, error) {
	mine, wanted := uint(0), uint(0)
	if c.Inter() {
		if _, second := everybody(c); second {
			mine = 32
		} else {
			wanted = 32
		}
	}
	flags := ^uint64(math.MaxUint32<<mine) | uint64(uint32(flag))<<mine
	return begin(c, agree.Contribution{Flags: flags}, func(o *deal) error {
		*all = int32(uint32(o.decision.Flags >> wanted))
		for rank := range o.decision.Unacked().All() {
			x, _ := o.of.group.At(rank)
			return fmt.Errorf("%w: %s, which some members have not acknowledged", proc.ErrProcFailed, c.Process().Survival.Who(message.Peer(x)))
		}
		return nil
	})
}

func Shrink(c *proc.Comm) (d *proc.Comm, err error) {
	if err := mitigates(c); err != nil {
		return nil, err
	}
	p := c.Process()
	p.Lock()
	defer p.Unlock()
	o, err := shrink(c, func(s comm.Spec) (err error) {
		d, err = p.Comms.NewComm(s)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := o.await(); err != nil {
		return nil, err
	}
	d.Inherit(c)
	return d, nil
}

func Ishrink(c *proc.Comm, fn string) (*proc.Comm, proc.Request, error) {
	if err := mitigates(c); err != nil {
		return nil, proc.Request{}, err
	}
	p := c.Process()
	d := c.NewPending(nil)
	d.Inherit(c)
	p.Lock()
	defer p.Unlock()
	o, err := shrink(c, func(s comm.Spec) error {
		if err := d.Activate(s); err != nil {
			return err
		}
		d.State().Life.Store(proc.Usable)
		return nil
	})
	if err != nil {
		return nil, proc.Request{}, err
	}
	return d, p.NewOperationRequest(c, fn, o), nil
}
