package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/openimpi/impi/internal/rpc/proto"
)

// Write accepts output of hosts below.
func (p parent) Write(stream proto.Cluster_WriteServer) error {
	if err := refused(stream.Context()); err != nil {
		return status.Error(codes.PermissionDenied, err.Error())
	}
	for {
		o, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return stream.SendAndClose(&proto.Nothing{})
		}
		if err != nil {
			return err
		}
		if err := p.h.write(o); err != nil {
			return status.Error(codes.Aborted, err.Error())
		}
	}
}

// write passes output on, or writes it: lines of different hosts are not mixed.
func (h *Host) write(o *proto.Output) error {
	if h.up != nil {
		return h.up.write(o)
	}
	if o.GetHost() < 1 || int(o.GetHost()) >= h.cfg.Tree.Hosts {
		return fmt.Errorf("output of host %d of %d", o.GetHost(), h.cfg.Tree.Hosts)
	}
	of := outputOf{int(o.GetHost()), o.GetError()}
	h.mu.Lock()
	w := h.outputs[of]
	if w == nil {
		if w = h.cfg.Stdout(); of.error {
			w = h.cfg.Stderr()
		}
		h.outputs[of] = w
	}
	h.mu.Unlock()
	_, err := w.Write(o.GetLines())
	if p, ok := w.(interface{ Flush() }); ok {
		p.Flush() // an incomplete line has waited long enough where it was written
	}
	return err
}

// Read sends the standard input.
func (p parent) Read(_ *proto.Nothing, stream proto.Cluster_ReadServer) error {
	if err := refused(stream.Context()); err != nil {
		return status.Error(codes.PermissionDenied, err.Error())
	}
	in := p.h.input(stream.Context())
	b := make([]byte, chunk)
	for {
		n, err := in.Read(b)
		if n > 0 {
			if err := stream.Send(&proto.Input{Data: b[:n]}); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return status.Error(codes.Aborted, err.Error())
		}
	}
}

// input returns the job's standard input, from above or from here. Reading it ends with ctx.
func (h *Host) input(ctx context.Context) io.Reader {
	switch {
	case h.up != nil:
		return h.up.read(ctx)
	case h.cfg.Stdin == nil:
		return bytes.NewReader(nil)
	}
	h.pumping.Do(func() { go h.pump() })
	return &pumped{h: h, ctx: ctx}
}

// pump reads the head's standard input, in a goroutine of its own since such a read may not be
// interruptible.
func (h *Host) pump() {
	defer close(h.stdin)
	for {
		b := make([]byte, chunk)
		n, err := h.cfg.Stdin.Read(b)
		if n > 0 {
			select {
			case h.stdin <- b[:n]:
			case <-h.ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

type pumped struct {
	h    *Host
	ctx  context.Context
	rest []byte
}

func (p *pumped) Read(b []byte) (int, error) {
	for len(p.rest) == 0 {
		var more bool
		select {
		case p.rest, more = <-p.h.stdin:
			if !more {
				return 0, io.EOF
			}
		case <-p.ctx.Done():
			return 0, context.Cause(p.ctx)
		}
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}
