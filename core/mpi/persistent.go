package mpi

import (
	"fmt"

	"github.com/openimpi/impi/core/message"
)

// SendInit makes an inactive request that sends buf each time it is started.
func SendInit[T Type](c *Comm, buf []T, dst, tag int) (Request, error) {
	return c.plan(plan{fn: "SendInit", mode: message.Standard, buf: Of(buf), peer: dst, tag: tag})
}

// SsendInit is SendInit in synchronous mode.
func SsendInit[T Type](c *Comm, buf []T, dst, tag int) (Request, error) {
	return c.plan(plan{fn: "SsendInit", mode: message.Synchronous, buf: Of(buf), peer: dst, tag: tag})
}

// BsendInit is SendInit in buffered mode.
func BsendInit[T Type](c *Comm, buf []T, dst, tag int) (Request, error) {
	return c.plan(plan{fn: "BsendInit", mode: message.Buffered, buf: Of(buf), peer: dst, tag: tag})
}

// RsendInit is SendInit in ready mode.
func RsendInit[T Type](c *Comm, buf []T, dst, tag int) (Request, error) {
	return c.plan(plan{fn: "RsendInit", mode: message.Ready, buf: Of(buf), peer: dst, tag: tag})
}

// RecvInit makes an inactive request that receives into buf each time it is started.
func RecvInit[T Type](c *Comm, buf []T, src, tag int) (Request, error) {
	return c.plan(plan{fn: "RecvInit", recv: true, buf: Of(buf), peer: src, tag: tag})
}

func (c *Comm) plan(pl plan) (Request, error) {
	err := c.fits(&pl.buf)
	switch {
	case err != nil:
	case pl.recv:
		_, _, _, err = c.wanted(pl.peer, pl.tag)
	default:
		_, _, err = c.partner(pl.peer, pl.tag)
	}
	if err != nil {
		return Request{}, c.failed(pl.fn, err)
	}
	pl.c = c
	return Request{c: c, extra: &extra{fn: pl.fn, plan: &pl}, standing: standing{state: inactive}}, nil
}

// Start begins the operation of an inactive request. Starting an active one is
// ErrRequest.
func (q *Request) Start() error { return q.c.failed("Start", q.start()) }

// idle refuses requests that cannot be started.
func (q *Request) idle() error {
	if q.plan() == nil || q.state != inactive {
		return fmt.Errorf("%w: only an inactive persistent request can be started", ErrRequest)
	}
	return nil
}

func (q *Request) start() error {
	if err := q.idle(); err != nil {
		return err
	}
	pl := q.plan()
	if pl.parts != nil {
		return pl.parts.start(q)
	}
	var next Request
	var err error
	if pl.recv {
		next, err = pl.c.startRecv(byIrecv, pl.buf, pl.peer, pl.tag)
	} else {
		next, err = pl.c.startSend(byIsend, pl.mode, pl.buf, pl.peer, pl.tag)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", pl.fn, err)
	}
	next.extra = q.extra
	*q = next
	return nil
}

// SendInit makes an inactive request that sends b each time it is started. The
// datatype may be freed meanwhile.
func (c *Comm) SendInit(b Buffer, dst, tag int) (Request, error) {
	return c.plan(plan{fn: "SendInit", mode: message.Standard, buf: b, peer: dst, tag: tag})
}

// SsendInit is SendInit in synchronous mode.
func (c *Comm) SsendInit(b Buffer, dst, tag int) (Request, error) {
	return c.plan(plan{fn: "SsendInit", mode: message.Synchronous, buf: b, peer: dst, tag: tag})
}

// BsendInit is SendInit in buffered mode.
func (c *Comm) BsendInit(b Buffer, dst, tag int) (Request, error) {
	return c.plan(plan{fn: "BsendInit", mode: message.Buffered, buf: b, peer: dst, tag: tag})
}

// RsendInit is SendInit in ready mode.
func (c *Comm) RsendInit(b Buffer, dst, tag int) (Request, error) {
	return c.plan(plan{fn: "RsendInit", mode: message.Ready, buf: b, peer: dst, tag: tag})
}

// RecvInit makes an inactive request that receives into b each time it is started.
func (c *Comm) RecvInit(b Buffer, src, tag int) (Request, error) {
	return c.plan(plan{fn: "RecvInit", recv: true, buf: b, peer: src, tag: tag})
}

// Startall starts each of reqs, or none of them if one cannot be started.
func Startall(reqs []Request) error {
	for i := range reqs {
		if err := reqs[i].idle(); err != nil {
			return reqs[i].c.failed("Startall", fmt.Errorf("request %d: %w", i, err))
		}
	}
	for i := range reqs {
		if err := reqs[i].start(); err != nil {
			return reqs[i].c.failed("Startall", fmt.Errorf("request %d: %w", i, err))
		}
	}
	return nil
}
