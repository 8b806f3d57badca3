package mpi

import "github.com/openimpi/impi/core/comm"

// Idup begins a Dup. The new communicator can be used once the request is
// complete, and never if that has failed. Other constructors of c and of others
// may begin meanwhile, in the same order on all members of c. Where members run
// another MPI library it is a Dup, and the request is null.
func (c *Comm) Idup() (*Comm, Request, error) {
	d, q, err := c.idup("Idup", nil)
	return d, q, c.failed("Idup", err)
}

// IdupWithInfo begins a DupWithInfo. info may be freed at once.
func (c *Comm) IdupWithInfo(info *Info) (*Comm, Request, error) {
	d, q, err := c.idup("IdupWithInfo", info)
	return d, q, c.failed("IdupWithInfo", err)
}

// duplication is an Idup under way.
type duplication struct {
	steady
	x      *agreement
	c, d   *Comm
	copies comm.Attrs
	err    error
}

func (c *Comm) idup(fn string, info *Info) (*Comm, Request, error) {
	if err := c.check(); err != nil {
		return nil, Request{}, err
	}
	if !c.ours() {
		d, err := c.dup(info)
		return d, Request{}, err
	}
	hints, bad := snapshot(info)
	copies, uncopied := c.copyAttrs()
	if bad == nil {
		bad = uncopied
	}
	p := c.p
	d := &Comm{p: p, Comm: c.Comm, local: c.local, hints: hints} // c's until it is its own
	d.life.Store(unborn)
	d.inherit(c)
	p.lock()
	defer p.unlock()
	o := &duplication{c: c, d: d, copies: copies}
	err := c.announceLater("Idup", func(seq uint32, verdict error) {
		if o.err = verdict; verdict != nil {
			return
		}
		o.x = c.agreement(seq)
		o.x.propose(doesIdup, bad, func() { o.born(bad) })
	})
	return d, p.begun(c, fn, o), err
}

// born makes the communicator one, now that its context is known.
func (o *duplication) born(bad error) {
	s := o.c.Spec()
	n := comm.IntraContexts
	if s.Remote != nil {
		n = comm.InterContexts
	}
	if s.Context, o.err = o.x.settle(n, bad); o.err != nil {
		return
	}
	if o.err = o.d.become(s); o.err != nil {
		return
	}
	o.d.attrs = o.copies
	o.d.life.Store(usable)
}

func (o *duplication) done() bool { return o.err != nil || o.x != nil && o.x.over }

func (o *duplication) status() (Status, error) { return emptyStatus, nil }

// finish drops what was copied for nothing, for which the program's functions
// are called.
func (o *duplication) finish() (Status, error) {
	o.gen++
	if !o.done() {
		return emptyStatus, o.c.p.failure
	}
	if o.err != nil {
		o.c.p.unlock()
		defer o.c.p.lock()
		o.c.dropAttrs(o.copies)
	}
	return emptyStatus, o.err
}
