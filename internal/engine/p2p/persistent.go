package p2p

import (
	"fmt"

	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/internal/engine/proc"
)

func SendInit[T proc.Type](c *proc.Comm, buf []T, dst, tag int) (proc.Request, error) {
	return plan(c, proc.Plan{Fn: "SendInit", Mode: message.Standard, Buf: proc.Of(buf), Peer: dst, Tag: tag})
}

func SsendInit[T proc.Type](c *proc.Comm, buf []T, dst, tag int) (proc.Request, error) {
	return plan(c, proc.Plan{Fn: "SsendInit", Mode: message.Synchronous, Buf: proc.Of(buf), Peer: dst, Tag: tag})
}

func BsendInit[T proc.Type](c *proc.Comm, buf []T, dst, tag int) (proc.Request, error) {
	return plan(c, proc.Plan{Fn: "BsendInit", Mode: message.Buffered, Buf: proc.Of(buf), Peer: dst, Tag: tag})
}

func RsendInit[T proc.Type](c *proc.Comm, buf []T, dst, tag int) (proc.Request, error) {
	return plan(c, proc.Plan{Fn: "RsendInit", Mode: message.Ready, Buf: proc.Of(buf), Peer: dst, Tag: tag})
}

func RecvInit[T proc.Type](c *proc.Comm, buf []T, src, tag int) (proc.Request, error) {
	return plan(c, proc.Plan{Fn: "RecvInit", Recv: true, Buf: proc.Of(buf), Peer: src, Tag: tag})
}

func plan(c *proc.Comm, pl proc.Plan) (proc.Request, error) {
	err := fits(c, &pl.Buf)
	switch {
	case err != nil:
	case pl.Recv:
		_, _, _, err = c.Wanted(pl.Peer, pl.Tag)
	default:
		_, _, err = c.PartnerOf(pl.Peer, pl.Tag)
	}
	if err != nil {
		return proc.Request{}, c.Failed(pl.Fn, err)
	}
	pl.C = c
	return proc.Unstarted(c, &proc.Extra{Fn: pl.Fn, Plan: &pl}), nil
}

func Start(q *proc.Request) error { return q.Comm().Failed("Start", start(q)) }

// idle refuses requests that cannot be started.
func idle(q *proc.Request) error {
	if q.Plan() == nil || q.State != proc.Inactive {
		return fmt.Errorf("%w: only an inactive persistent request can be started", proc.ErrRequest)
	}
	return nil
}

func start(q *proc.Request) error {
	if err := idle(q); err != nil {
		return err
	}
	pl := q.Plan()
	if pl.Parts != nil {
		return pl.Parts.Start(q)
	}
	var next proc.Request
	var err error
	if pl.Recv {
		next, err = startRecv(pl.C, proc.ByIrecv, pl.Buf, pl.Peer, pl.Tag)
	} else {
		next, err = startSend(pl.C, proc.ByIsend, pl.Mode, pl.Buf, pl.Peer, pl.Tag)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", pl.Fn, err)
	}
	*next.Extra() = *q.Extra()
	*q = next
	return nil
}

func SendInitItems(c *proc.Comm, b proc.Buffer, dst, tag int) (proc.Request, error) {
	return plan(c, proc.Plan{Fn: "SendInit", Mode: message.Standard, Buf: b, Peer: dst, Tag: tag})
}

func SsendInitItems(c *proc.Comm, b proc.Buffer, dst, tag int) (proc.Request, error) {
	return plan(c, proc.Plan{Fn: "SsendInit", Mode: message.Synchronous, Buf: b, Peer: dst, Tag: tag})
}

func BsendInitItems(c *proc.Comm, b proc.Buffer, dst, tag int) (proc.Request, error) {
	return plan(c, proc.Plan{Fn: "BsendInit", Mode: message.Buffered, Buf: b, Peer: dst, Tag: tag})
}

func RsendInitItems(c *proc.Comm, b proc.Buffer, dst, tag int) (proc.Request, error) {
	return plan(c, proc.Plan{Fn: "RsendInit", Mode: message.Ready, Buf: b, Peer: dst, Tag: tag})
}

func RecvInitItems(c *proc.Comm, b proc.Buffer, src, tag int) (proc.Request, error) {
	return plan(c, proc.Plan{Fn: "RecvInit", Recv: true, Buf: b, Peer: src, Tag: tag})
}

func Startall(reqs []proc.Request) error {
	for i := range reqs {
		if err := idle(&reqs[i]); err != nil {
			return reqs[i].Comm().Failed("Startall", fmt.Errorf("request %d: %w", i, err))
		}
	}
	for i := range reqs {
		if err := start(&reqs[i]); err != nil {
			return reqs[i].Comm().Failed("Startall", fmt.Errorf("request %d: %w", i, err))
		}
	}
	return nil
}
