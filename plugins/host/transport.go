package host

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/proto"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// Transport returns the plugin's transport. Its links are transports.Socket,
// transports.Memory or transports.Relayed, which can be handed on, and OriginOf says how
// they were made. Its errors are *transports.Error; those that come from the plugin's state
// wrap an *Error.
func (p *Plugin) Transport() transports.Transport { return remote{p, p.cfg.DataPlanes} }

// Pinned returns the plugin's transport restricted to some data planes: each link uses the
// first of them that is possible, and fails if none is.
func (p *Plugin) Pinned(planes []transports.DataPlane) transports.Transport {
	return remote{p, slices.Clone(planes)}
}

// remote is the transport in a plugin.
type remote struct {
	p      *Plugin
	pinned []transports.DataPlane // empty: all
}

func (t remote) Info() transports.Info {
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	return t.p.info
}

func (t remote) Capabilities() transports.Capabilities {
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	return t.p.caps
}

func (t remote) Schema() []transports.Setting {
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	return append([]transports.Setting(nil), t.p.schema...)
}

// Configure checks the settings, passes them to the plugin, and keeps them for later processes.
func (t remote) Configure(settings map[string]any) error {
	ctx, cancel := context.WithTimeout(context.Background(), defaultTimeout)
	defer cancel()
	inst, err := t.p.acquire(ctx)
	if err != nil {
		return err
	}
	if err := inst.configure(ctx, settings); err != nil {
		return inst.hung(err)
	}
	caps, err := inst.capabilities(ctx)
	if err != nil {
		return inst.hung(err)
	}
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	t.p.settings, t.p.applied, t.p.caps = settings, true, caps
	return nil
}

func (i *instance) capabilities(ctx context.Context) (c transports.Capabilities, err error) {
	answer, err := i.rpc.Capabilities(ctx, &proto.CapabilitiesRequest{Call: i.call(ctx)})
	if err != nil {
		return c, i.broken(ctx, "Capabilities", err)
	}
	return proto.ToCapabilities(answer), nil
}

// Dial makes the plugin dial. If the plugin dies during that, the next process dials once more.
func (t remote) Dial(ctx context.Context, to transports.DialSpec) (link.Link, error) {
	var l link.Link
	err := t.p.withInstance(ctx, func(inst *instance) (err error) {
		l, err = inst.dial(ctx, to, t.pinned)
		return err
	})
	if err != nil {
		return nil, t.p.failure("dial", to.Address, err)
	}
	return l, nil
}

// Listen makes the plugin listen. The listener outlives the plugin's process.
func (t remote) Listen(ctx context.Context, at transports.ListenSpec) (transports.Listener, error) {
	if at.Port < 0 || at.Port > 65535 {
		return nil, &transports.Error{Transport: t.p.cfg.Name, Op: "listen", Address: place(at), Code: transports.CodeAddress,
			Reason: "the port must be between 0 and 65535"}
	}
	var l *listener
	err := t.p.withInstance(ctx, func(inst *instance) error {
		l = newListener(t.p, at, t.pinned)
		err := inst.listen(ctx, l, "")
		if err == nil {
			err = t.p.keepListener(inst, l)
		}
		if err != nil {
			l.cancel()
		}
		return err
	})
	if err != nil {
		return nil, t.p.failure("listen", place(at), err)
	}
	return l, nil
}

// withInstance runs f on the healthy instance, and if that dies meanwhile once more on the
// next one.
func (p *Plugin) withInstance(ctx context.Context, f func(*instance) error) error {
	for again := false; ; again = true {
		inst, err := p.acquire(ctx)
		if err != nil {
			return err
		}
		err = f(inst)
		if err == nil || again || !inst.useless() || ctx.Err() != nil {
			return err
		}
	}
}

func (i *instance) dial(ctx context.Context, to transports.DialSpec, pinned []transports.DataPlane) (link.Link, error) {
	req := &proto.DialRequest{Call: i.call(ctx), Address: to.Address, From: to.From}
	answer, err := i.rpc.Dial(ctx, req)
	if err != nil {
		i.abandon(req.Call)
		return nil, i.broken(ctx, "Dial", err)
	}
	if answer.GetError() != nil {
		return nil, answer.GetError().TransportError(i.cfg.Name, "dial", to.Address)
	}
	l, err := i.open(ctx, opening{answer.GetLinkId(), pinned, "dial", to.Address})
	if err != nil {
		i.closeLink(answer.GetLinkId())
	}
	return l, err
}

// drain has the plugin finish its work, within d. It reports whether the plugin still
// answers.
func (i *instance) drain(d time.Duration) bool {
	ctx, cancel := context.WithTimeout(i.ctx, d)
	defer cancel()
	call := i.call(ctx)
	call.TimeoutMs -= call.TimeoutMs / 4 // so that the answer comes before our own timeout
	_, err := i.rpc.Drain(ctx, &proto.DrainRequest{Call: call})
	return err == nil
}

// keepListener registers a listener that inst has opened, so that it is opened again after
// a restart.
func (p *Plugin) keepListener(inst *instance, l *listener) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isClosed() {
		return p.errClosed()
	}
	if inst.useless() {
		return inst.err
	}
	p.listeners[l] = struct{}{}
	p.work.Go(l.serve)
	return nil
}

func (p *Plugin) dropListener(l *listener) {
	p.mu.Lock()
	delete(p.listeners, l)
	inst := p.cur
	p.mu.Unlock()
	if inst != nil {
		p.dropFrom(inst, l)
	}
}

func (p *Plugin) dropFrom(inst *instance, l *listener) {
	if id, found := inst.listeners.leave(l); found {
		inst.stopListen(id)
	}
}

// CountLink counts a link of the plugin that is used for the job. The caller decides that: other
// links are only for inspection or measurement.
func (p *Plugin) CountLink() {
	if p == nil {
		return // as in tests
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.Links++
}

// failure converts any error to the *transports.Error of the contract.
func (p *Plugin) failure(op, address string, err error) error {
	if _, ok := errors.AsType[*transports.Error](err); err == nil || ok {
		return err
	}
	e := &transports.Error{Transport: p.cfg.Name, Op: op, Address: address, Code: transports.CodeInternal,
		Retryable: retryable(err), Reason: err.Error(), Cause: err}
	var own *Error
	switch {
	case errors.As(err, &own):
		e.Reason = own.brief()
	case errors.Is(err, context.DeadlineExceeded):
		e.Code, e.Retryable, e.Reason = transports.CodeTimeout, true, "no answer in time"
	case errors.Is(err, context.Canceled):
		e.Code, e.Reason = transports.CodeTimeout, "cancelled by the caller"
	}
	return e
}

func place(at transports.ListenSpec) string {
	if at.Host == "" {
		return at.Dir + "/" + at.Name
	}
	return net.JoinHostPort(at.Host, strconv.Itoa(at.Port))
}
