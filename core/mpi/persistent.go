package mpi

import (
	"fmt"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
)

// plan is what a persistent request does each time it is started.
type plan struct {
	c         *Comm
	fn        string
	recv      bool
	mode      message.Mode
	buf       []byte
	kind      datatype.Kind
	peer, tag int
}

// SendInit makes an inactive request that sends buf each time it is started.
func SendInit[T Type](c *Comm, buf []T, dst, tag int) (Request, error) {
	return c.plan(plan{fn: "SendInit", mode: message.Standard, buf: datatype.Bytes(buf), kind: datatype.KindOf[T](), peer: dst, tag: tag})
}

// SsendInit is SendInit in synchronous mode.
func SsendInit[T Type](c *Comm, buf []T, dst, tag int) (Request, error) {
	return c.plan(plan{fn: "SsendInit", mode: message.Synchronous, buf: datatype.Bytes(buf), kind: datatype.KindOf[T](), peer: dst, tag: tag})
}

// BsendInit is SendInit in buffered mode.
func BsendInit[T Type](c *Comm, buf []T, dst, tag int) (Request, error) {
	return c.plan(plan{fn: "BsendInit", mode: message.Buffered, buf: datatype.Bytes(buf), kind: datatype.KindOf[T](), peer: dst, tag: tag})
}

// RsendInit is SendInit in ready mode.
func RsendInit[T Type](c *Comm, buf []T, dst, tag int) (Request, error) {
	return c.plan(plan{fn: "RsendInit", mode: message.Ready, buf: datatype.Bytes(buf), kind: datatype.KindOf[T](), peer: dst, tag: tag})
}

// RecvInit makes an inactive request that receives into buf each time it is started.
func RecvInit[T Type](c *Comm, buf []T, src, tag int) (Request, error) {
	return c.plan(plan{fn: "RecvInit", recv: true, buf: datatype.Bytes(buf), kind: datatype.KindOf[T](), peer: src, tag: tag})
}

func (c *Comm) plan(pl plan) (Request, error) {
	var err error
	if pl.recv {
		_, _, _, err = c.wanted(pl.peer, pl.tag)
	} else {
		_, _, err = c.partner(pl.peer, pl.tag)
	}
	if err != nil {
		return Request{}, c.failed(pl.fn, err)
	}
	pl.c = c
	return Request{p: c.p, c: c, plan: &pl, state: inactive}, nil
}

// Start begins the operation of an inactive request. Starting an active one is
// ErrRequest.
func (q *Request) Start() error { return q.c.failed("Start", q.start()) }

func (q *Request) start() error {
	if q.plan == nil || q.state != inactive {
		return fmt.Errorf("%w: only an inactive persistent request can be started", ErrRequest)
	}
	pl := q.plan
	var next Request
	var err error
	if pl.recv {
		next, err = pl.c.irecv(pl.fn, pl.buf, pl.kind, pl.peer, pl.tag)
	} else {
		next, err = pl.c.isend(pl.fn, pl.mode, pl.buf, pl.kind, pl.peer, pl.tag)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", pl.fn, err)
	}
	next.plan = pl
	*q = next
	return nil
}

// Startall starts each of reqs.
func Startall(reqs []Request) error {
	for i := range reqs {
		if err := reqs[i].start(); err != nil {
			return reqs[i].c.failed("Startall", fmt.Errorf("request %d: %w", i, err))
		}
	}
	return nil
}
