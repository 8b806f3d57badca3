package mpi

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/comm"
)

// Free ends the use of c by this proc, after its attributes have been deleted. If
// that fails c stays. What is under way on c still takes place. All members call
// it.
func (c *Comm) Free() error { return c.failed("Free", c.free()) }

func (c *Comm) free() error {
	if err := c.mayEnd(); err != nil {
		return err
	}
	if c.local == nil && !c.ours() {
		// IMPI ch.4, Comm_free: a Barrier before everybody's own part.
		if err := c.meet(); err != nil {
			return err
		}
	}
	return c.end()
}

// mayEnd refuses communicators that cannot be freed.
func (c *Comm) mayEnd() error {
	if err := c.check(); err != nil {
		return err
	}
	if c.fixed {
		return fmt.Errorf("%w: %s cannot be freed", comm.ErrComm, c.label())
	}
	return nil
}

// end deletes the attributes. Of several that free c at a time one does.
func (c *Comm) end() error {
	if err := c.deleteAttrs(); err != nil {
		return err
	}
	if !c.life.CompareAndSwap(usable, freed) {
		return c.alive()
	}
	c.leaveBoard()
	c.dropBuffer()
	if met := c.p.use(c.Comm, -1); len(met) > 0 {
		c.p.bury(met)
	}
	c.p.strike(c.Comm)
	c.p.forgetExpress()
	if c.wide() {
		c.p.lock()
		c.p.release(c.Context())
		c.p.unlock()
	}
	return nil
}

// Disconnect waits until all sends and receives on c have taken place, on all
// members, and then is Free. Where members have died it fails, on all others; those
// can free c.
func (c *Comm) Disconnect() error { return c.failed("Disconnect", c.disconnect()) }

func (c *Comm) disconnect() error {
	if err := c.mayEnd(); err != nil {
		return err
	}
	if err := c.p.settle(c.quiet); err != nil {
		return err
	}
	met := c.p.worldsOf(c.Comm.Group(), c.Remote())
	if err := c.meet(); err != nil {
		c.p.doubt(met, err)
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	if len(met) > 0 {
		c.p.part(met)
	}
	return nil
}

// quiet tells whether no send or receive on c is under way. The process is locked.
func (c *Comm) quiet() bool {
	for x := range c.p.eng.Pending() {
		if x.What != "message" && (x.Env.Context == c.Context() || x.Env.Context == c.CollectiveContext()) {
			return false
		}
	}
	return true
}

// meet is Barrier without the handler.
func (c *Comm) meet() error {
	p := c.p
	p.lock()
	ours := c.ours()
	if !ours {
		p.unlock()
		return c.call(&call{what: barrier})
	}
	defer p.unlock()
	x := c.agreement(c.ordinal())
	x.begin(comm.Proposal{Flags: doesMeet}, func() {})
	x.wait()
	err := errors.Join(x.err, inOneVoice(x.all.Flags|x.side))
	if err == nil && x.all.Fault != 0 {
		err = elsewhere(x.all.Fault)
	}
	return err
}
