package construct

import (
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/object"
	"github.com/openimpi/impi/internal/engine/proc"
)

type duplication struct {
	proc.Uncancellable
	x      *agreement
	c, d   *proc.Comm
	copies comm.Attrs
	err    error
}

// Idup begins to duplicate c (MPI-4.1, 7.4.2). The new communicator can be used once the request is
// complete. fn is the name for errors.
func Idup(c *proc.Comm, fn string, info *proc.Info) (*proc.Comm, proc.Request, error) {
	if err := c.Usable(); err != nil {
		return nil, proc.Request{}, err
	}
	if !AllRunImpi(c) {
		d, err := Dup(c, info)
		return d, proc.Request{}, err
	}
	hints, bad := Snapshot(info)
	copies, uncopied := object.CopyAttrs(c)
	if bad == nil {
		bad = uncopied
	}
	p := c.Process()
	d := c.NewPending(hints)
	d.Inherit(c)
	p.Lock()
	defer p.Unlock()
	o := &duplication{c: c, d: d, copies: copies}
	err := collective.CheckConstructorLater(c, "Idup", func(seq uint32, verdict error) {
		if o.err = verdict; verdict != nil {
			return
		}
		o.x = Agreement(c, seq)
		o.x.Propose(collective.ConstructorIdup, bad, func() { o.born(bad) })
	})
	return d, p.NewOperationRequest(c, fn, o), err
}

func (o *duplication) born(bad error) {
	s := o.c.Spec()
	n := comm.IntraContexts
	if s.Remote != nil {
		n = comm.InterContexts
	}
	if s.Context, o.err = o.x.Conclude(n, bad); o.err != nil {
		return
	}
	if o.err = o.d.Activate(s); o.err != nil {
		return
	}
	o.d.State().Attrs = o.copies
	o.d.State().Life.Store(proc.Usable)
}

func (o *duplication) Done() bool { return o.err != nil || o.x != nil && o.x.over }

func (o *duplication) Status() (proc.Status, error) { return proc.EmptyStatus, nil }

// Finish deletes the copied attributes if the communicator was not made, which calls functions of
// the program.
func (o *duplication) Finish() (proc.Status, error) {
	o.Gen++
	if !o.Done() {
		return proc.EmptyStatus, o.c.Process().Failure
	}
	if o.err != nil {
		o.c.Process().Unlock()
		defer o.c.Process().Lock()
		object.DropAttrs(o.c, o.copies)
	}
	return proc.EmptyStatus, o.err
}
