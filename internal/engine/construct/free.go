package construct

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/object"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Free frees c at this member; messages under way still arrive (MPI-4.1, 7.4.3). All members call
// it.
func Free(c *proc.Comm) error {
	if err := mayEnd(c); err != nil {
		return err
	}
	if c.State().Local == nil && !AllRunImpi(c) {
		// IMPI ch.4, Comm_free: a Barrier before each member's own part.
		if err := PlainBarrier(c); err != nil {
			return err
		}
	}
	return end(c)
}

func mayEnd(c *proc.Comm) error {
	if err := c.Usable(); err != nil {
		return err
	}
	if c.State().Fixed {
		return fmt.Errorf("%w: %s cannot be freed", comm.ErrComm, c.Label())
	}
	return nil
}

// end deletes the attributes and frees c. If several goroutines call it at a time, one succeeds.
func end(c *proc.Comm) error {
	if err := object.DeleteAttrs(c); err != nil {
		return err
	}
	if !c.State().Life.CompareAndSwap(proc.Usable, proc.Freed) {
		return c.Alive()
	}
	c.LeaveBoard()
	collective.FreeNativeComm(c)
	c.DropBuffer()
	if met := c.Process().Worlds.Use(c.Comm, -1); len(met) > 0 {
		c.Process().Disconnects.DisconnectLost(met)
	}
	c.Process().Comms.Unregister(c.Comm)
	c.Process().FastPath.ForgetComm(c)
	if c.Wide() {
		c.Process().Lock()
		Release(c.Process(), c.Context())
		c.Process().Unlock()
	}
	return nil
}

// Disconnect waits until all communication in c is complete, and frees c (MPI-4.1, 11.10.4). All
// members call it.
func Disconnect(c *proc.Comm) error {
	if err := mayEnd(c); err != nil {
		return err
	}
	if err := c.Process().ProgressUntil(func() bool { return quiet(c) }); err != nil {
		return err
	}
	met := c.Process().Worlds.WorldsOf(c.Comm.Group(), c.Remote())
	if err := PlainBarrier(c); err != nil {
		c.Process().Worlds.MarkLost(met, err)
		return err
	}
	if err := end(c); err != nil {
		return err
	}
	if len(met) > 0 {
		c.Process().Disconnects.Disconnect(met)
	}
	return nil
}

// quiet reports whether no send or receive on c is under way. The process is locked.
func quiet(c *proc.Comm) bool {
	for x := range c.Process().Eng.Pending() {
		if x.What != "message" && (x.Env.Context == c.Context() || x.Env.Context == c.CollectiveContext()) {
			return false
		}
	}
	return true
}

// PlainBarrier is Barrier; errors are returned without a call of the error handler.
func PlainBarrier(c *proc.Comm) error { return BarrierAfter(c, nil) }

// BarrierAfter is PlainBarrier. If failed is not nil at one member, it fails at all members that
// run this library.
func BarrierAfter(c *proc.Comm, failed error) error {
	p := c.Process()
	p.Lock()
	ours := AllRunImpi(c)
	if !ours {
		p.Unlock()
		return collective.Execute(c, &collective.Call{What: collective.OpBarrier})
	}
	defer p.Unlock()
	x := idle.Get().(*agreement)
	x.among(c, c.Ordinal())
	x.Begin(comm.Proposal{Flags: collective.ConstructorMeet, Fault: FaultCode(failed)}, func() {})
	x.Wait()
	err := errors.Join(x.Err, inOneVoice(x.All.Flags|x.Side))
	if err == nil && x.All.Fault != 0 {
		err = FailedElsewhere(x.All.Fault)
	}
	x.recycle()
	return err
}
