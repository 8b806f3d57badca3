package p2p

import (
	"fmt"

	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/internal/engine/proc"
)

// SendInit makes a persistent send in any mode (MPI-4.1, 3.9). fn is the function of MPI that was
// called.
func SendInit(c *proc.Comm, fn string, mode message.Mode, b proc.Buffer, dst, tag int) (proc.Request, error) {
	return plan(c, proc.Plan{Fn: fn, Mode: mode, Buf: b, Peer: dst, Tag: tag})
}

func RecvInit(c *proc.Comm, b proc.Buffer, src, tag int) (proc.Request, error) {
	return plan(c, proc.Plan{Fn: "RecvInit", Recv: true, Buf: b, Peer: src, Tag: tag})
}

func plan(c *proc.Comm, pl proc.Plan) (proc.Request, error) {
	err := fits(c, &pl.Buf)
	switch {
	case err != nil:
	case pl.Recv:
		_, _, _, err = c.RecvEnvelope(pl.Peer, pl.Tag)
	default:
		_, _, err = c.PartnerOf(pl.Peer, pl.Tag)
	}
	if err != nil {
		return proc.Request{}, err
	}
	pl.C = c
	return proc.NewPersistentRequest(c, &proc.RequestExtension{Fn: pl.Fn, Plan: &pl}), nil
}

func idle(q *proc.Request) error {
	if q.Plan() == nil || q.State != proc.Inactive {
		return fmt.Errorf("%w: only an inactive persistent request can be started", proc.ErrRequest)
	}
	return nil
}

func Start(q *proc.Request) error {
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
		next, err = isendChecked(pl.C, proc.ByIsend, pl.Mode, pl.Buf, pl.Peer, pl.Tag)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", pl.Fn, err)
	}
	*next.Extension() = *q.Extension()
	*q = next
	return nil
}

// Startall starts all requests, or none if one of them cannot be started because it is not inactive
// (MPI-4.1, 3.9).
func Startall(reqs []proc.Request) (*proc.Comm, error) {
	for _, do := range []func(*proc.Request) error{idle, Start} {
		for i := range reqs {
			c := reqs[i].Comm()
			if err := do(&reqs[i]); err != nil {
				return c, fmt.Errorf("request %d: %w", i, err)
			}
		}
	}
	return nil, nil
}
