package window

import (
	"fmt"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/rma"
	"github.com/openimpi/impi/internal/engine/proc"
)

// sizes are the sizes of an operation's data in bytes as they are sent: at the origin, and at the
// target.
type sizes struct{ here, there int64 }

// mayGo checks everything about an operation but its epoch. none reports whether there is nothing
// to do.
func (o *Origin) mayGo(to *Target, b *proc.Buffer) (size sizes, none bool, err error) {
	if err := o.w.Check(); err != nil {
		return size, false, err
	}
	if err := b.Check(); err != nil {
		return size, false, err
	}
	if to.Count < 0 {
		return size, false, fmt.Errorf("%w: %d at the target", datatype.ErrCount, to.Count)
	}
	if err := to.Type.Check(); err != nil {
		return size, false, err
	}
	switch {
	case to.Rank == proc.ProcNull:
		return size, true, nil
	case to.Rank < 0 || to.Rank >= o.w.c.Size():
		return size, false, o.w.noRank(to.Rank)
	case to.Disp < 0:
		return size, false, fmt.Errorf("%w: %d", rma.ErrDisp, to.Disp)
	}
	if err := o.reach(to); err != nil {
		return size, false, err
	}
	rep := o.w.Process.Data.DataOf(o.w.peer(to.Rank))
	size = sizes{b.Size(rep), int64(to.Count) * to.Type.Packed(rep)}
	return size, false, nil
}

// reach returns an error if the items are not in the target's window. For a dynamic window only the
// target can tell.
func (o *Origin) reach(to *Target) error {
	if o.w.flavor == WinFlavorDynamic {
		return rma.Check(int64(to.Count), to.Type)
	}
	if _, err := o.w.memory.extents[to.Rank].Locate(to.Disp, int64(to.Count), to.Type); err != nil {
		return fmt.Errorf("rank %d: %w", to.Rank, err)
	}
	return nil
}

// nothing returns the Request of an operation that has nothing to do, if it has one.
func (o *Origin) nothing(request bool) proc.Request {
	if !request || o.w == nil || o.w.Process == nil {
		return proc.Request{}
	}
	return proc.NoPartner(o.w.c, proc.ByIsend)
}

func (o *Origin) operate(fn string, to *Target, h rma.Header, x parts, size int64, request bool) (proc.Request, error) {
	p := o.w.Process
	p.Lock()
	defer p.Unlock()
	if p.Failure != nil {
		return proc.Request{}, p.Failure
	}
	if err := lostAt(o.w, to.Rank); err != nil {
		return proc.Request{}, err
	}
	passive, err := o.w.sync.now().Operate(to.Rank, request)
	switch {
	case err != nil:
		return proc.Request{}, err
	case size == 0:
		return o.nothing(request), nil
	}
	if base := o.w.memory.base(to.Rank); base != nil && !p.Data.Signs() {
		return o.nothing(request), o.direct.operate(o.w, to, &h, &x, base)
	}
	if !p.Data.Signs() && o.across(to, &h, &x) {
		return o.nothing(request), nil
	}
	if h.Type, err = o.describe(to.Type); err != nil {
		return proc.Request{}, err
	}
	h.Passive = passive
	if x.in != nil {
		x.want = size
	}
	a := o.ask(to.Rank, h, x)
	t := &o.targets[to.Rank]
	if x.in == nil {
		t.begun++
	}
	if !t.listed {
		t.listed = true
		o.dirty = append(o.dirty, to.Rank)
	}
	a.held = request
	o.enlist(t, a)
	if request {
		return p.NewOperationRequest(o.w.c, fn, a), nil
	}
	return proc.Request{}, nil
}

func (o *Origin) describe(t *proc.Datatype) (form []byte, err error) {
	if o.form, err = t.AppendBinary(o.form[:0]); err != nil {
		return nil, err
	}
	if len(o.form) > rma.MaxTypeLen {
		return nil, fmt.Errorf("%w: %v takes %d bytes to be described", datatype.ErrTooLarge, t, len(o.form))
	}
	return o.form, nil
}

// enlist keeps an operation until it is complete here, and removes earlier ones that are complete.
func (o *Origin) enlist(t *target, a *access) {
	t.reap()
	if len(t.open) == 0 && a.Done() {
		t.keepError(a)
		a.discard()
		return
	}
	a.queued = true
	t.open = append(t.open, a)
}

func (t *target) reap() {
	n := 0
	for ; n < len(t.open) && t.open[n].Done(); n++ {
		a := t.open[n]
		a.queued = false
		t.keepError(a)
		a.discard()
	}
	if n > 0 {
		clear(t.open[:n])
		t.open = t.open[n:]
	}
}

// keepError keeps the first error of operations that have no Request to report it.
func (t *target) keepError(a *access) {
	if a.err != nil && !a.held && t.err == nil {
		t.err = a.err
	}
}
