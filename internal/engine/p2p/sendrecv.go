package p2p

import (
	"fmt"

	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/internal/engine/proc"
)

func Sendrecv(c *proc.Comm, out proc.Buffer, dst, stag int, in proc.Buffer, src, rtag int) (proc.Status, error) {
	return Exchange(c, SendrecvArgs{Out: out, Dst: dst, Stag: stag, In: in, Src: src, Rtag: rtag})
}

func SendrecvReplace(c *proc.Comm, b proc.Buffer, dst, stag, src, rtag int) (proc.Status, error) {
	return Exchange(c, SendrecvArgs{Out: b, Dst: dst, Stag: stag, In: b, Src: src, Rtag: rtag, replace: true})
}

func Isendrecv(c *proc.Comm, out proc.Buffer, dst, stag int, in proc.Buffer, src, rtag int) (proc.Request, error) {
	return isendrecv(c, "Isendrecv", SendrecvArgs{Out: out, Dst: dst, Stag: stag, In: in, Src: src, Rtag: rtag})
}

func IsendrecvReplace(c *proc.Comm, b proc.Buffer, dst, stag, src, rtag int) (proc.Request, error) {
	return isendrecv(c, "IsendrecvReplace", SendrecvArgs{Out: b, Dst: dst, Stag: stag, In: b, Src: src, Rtag: rtag, replace: true})
}

// SendrecvArgs contains the arguments of a Sendrecv (MPI-4.1, 3.10).
type SendrecvArgs struct {
	Out       proc.Buffer
	Dst, Stag int
	In        proc.Buffer
	Src, Rtag int
	replace   bool // out and in are the same
}

// twoway is a send and a receive under way; either may be missing.
type twoway struct {
	p       *proc.Process
	gen     uint32
	s, r    *message.Request
	out, in *proc.Stream
}

// Exchange sends and receives at the same time, and blocks until both are complete.
func Exchange(c *proc.Comm, w SendrecvArgs) (proc.Status, error) {
	if c == nil {
		return proc.Status{}, proc.NoComm()
	}
	p := c.Process()
	p.Lock()
	defer p.Unlock()
	x := twoway{p: p}
	if err := x.begin(c, &w, true); err != nil {
		return proc.Status{}, err
	}
	if x.s != nil {
		p.Wait(x.s)
	}
	if x.r != nil {
		p.Wait(x.r)
	}
	return x.Finish()
}

func isendrecv(c *proc.Comm, fn string, w SendrecvArgs) (proc.Request, error) {
	if c == nil {
		return proc.Request{}, proc.NoComm()
	}
	p := c.Process()
	p.Lock()
	defer p.Unlock()
	x := &twoway{p: p}
	if err := x.begin(c, &w, false); err != nil {
		return proc.Request{}, err
	}
	return p.NewOperationRequest(c, fn, x), nil
}

// begin starts both messages, or none if an argument is wrong.
func (x *twoway) begin(c *proc.Comm, w *SendrecvArgs, blocking bool) error {
	peer, noDst, err := c.PartnerOf(w.Dst, w.Stag)
	if err != nil {
		return err
	}
	env, from, noSrc, err := c.RecvEnvelope(w.Src, w.Rtag)
	if err != nil {
		return err
	}
	if err = w.Out.Check(); err == nil {
		err = w.In.Check()
	}
	if err != nil {
		return err
	}
	p := x.p
	var out proc.Payload
	if !noDst {
		out = p.Data.Items(peer, w.Out)
		if w.replace {
			detach(p, &out)
		}
		x.out = out.Items
	}
	if !noSrc {
		in := p.Data.Items(from, w.In)
		x.r, x.in = p.Irecv(env, from, &in), in.Items
	}
	if !noDst {
		x.s = p.Isend(peer, c.Envelope(w.Stag), message.Standard, &out, blocking)
	}
	return nil
}

// detach copies a payload, so that it does not depend on the program's memory any more.
func detach(p *proc.Process, x *proc.Payload) {
	if x.Items == nil {
		x.Mem = append([]byte(nil), x.Mem...)
		return
	}
	x.Mem = make([]byte, x.Items.Buf.Size(x.Items.Rep))
	if len(x.Mem) > 0 {
		x.Items.Pack(x.Mem, 0)
	}
	p.Data.Retire(x.Items)
	x.Items = nil
}

func (x *twoway) Generation() uint32 { return x.gen }

func (x *twoway) Done() bool {
	return (x.s == nil || x.s.Done()) && (x.r == nil || x.r.Done())
}

func (x *twoway) Status() (proc.Status, error) {
	if x.r == nil {
		return proc.ProcNullStatus, nil
	}
	return x.p.RecvStatus(x.r, x.in), nil
}

func (x *twoway) Finish() (st proc.Status, err error) {
	x.gen++
	st = proc.ProcNullStatus
	var serr error
	if x.s != nil {
		serr = x.p.End(x.s, x.out)
	}
	if x.r != nil {
		st, err = x.p.FinishRecv(x.r, x.in)
	}
	if err == nil {
		err = serr
	}
	return st, err
}

func (x *twoway) Cancel() error {
	return fmt.Errorf("%w: a send and a receive in one cannot be cancelled", proc.ErrRequest)
}

func (x *twoway) Free() error {
	x.gen++
	for _, r := range []*message.Request{x.s, x.r} {
		if r != nil {
			x.p.Eng.Release(r)
		}
	}
	return nil
}
