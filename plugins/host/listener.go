package host

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/proto"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// listener is a transports.Listener that outlives the plugin process in which it
// listens.
type listener struct {
	p       *Plugin
	spec    transports.ListenSpec
	pinned  []transports.DataPlane
	address string

	announced chan announcement
	ready     chan arrival
	done      chan struct{} // closed with the listener
	ctx       context.Context
	cancel    context.CancelFunc

	mu  sync.Mutex
	err error // why it is closed
}

// announcement is an accepted link that the plugin still holds.
type announcement struct {
	inst *instance
	link uint64
	from netip.Addr
}

// arrival is an accepted link, and the address of its peer if the plugin knows it.
type arrival struct {
	link.Link
	from netip.Addr
}

// readyLinks is how many accepted links wait here for Accept. More wait in the plugin, up
// to proto.MaxWaiting, and others in the kernel's backlog.
const readyLinks = 32

var errAnnounced = errors.New("more links announced than a plugin may hold")

func newListener(p *Plugin, spec transports.ListenSpec, pinned []transports.DataPlane) *listener {
	l := &listener{
		p: p, spec: spec, pinned: pinned,
		announced: make(chan announcement, proto.MaxWaiting),
		ready:     make(chan arrival, readyLinks),
		done:      make(chan struct{}),
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Address returns the listener's address, which is the same for its whole life.
func (l *listener) Address() string { return l.address }

// Accept waits for the next link.
func (l *listener) Accept(ctx context.Context) (link.Link, error) {
	x, _, err := l.AcceptFrom(ctx)
	return x, err
}

// AcceptFrom also returns the peer's address, which is the zero one if the plugin does not know it.
func (l *listener) AcceptFrom(ctx context.Context) (link.Link, netip.Addr, error) {
	select {
	case <-l.done:
		return nil, netip.Addr{}, l.reason()
	default:
	}
	select {
	case <-l.done:
		return nil, netip.Addr{}, l.reason()
	case x := <-l.ready:
		return x.Link, x.from, nil
	case <-ctx.Done():
		return nil, netip.Addr{}, l.p.failure("accept", l.address, ctx.Err())
	}
}

// Close stops accepting, here and, when it returns, in the plugin.
func (l *listener) Close() error {
	l.fail(link.ErrClosed)
	return nil
}

func (l *listener) fail(reason error) {
	if l.shut(reason) {
		l.p.dropListener(l)
	}
}

// shut closes the listener on this side. It returns false if it was closed already.
func (l *listener) shut(reason error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return false
	}
	l.err = reason
	close(l.done)
	l.cancel()
	return true
}

func (l *listener) reason() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// event handles an event of the plugin. It does not block.
func (l *listener) event(i *instance, e *proto.Event) error {
	if f := e.GetListenerFailed(); f != nil {
		err := f.GetError().TransportError(i.cfg.Name, "accept", l.address)
		if err == nil {
			err = link.ErrClosed
		}
		i.spawn(func() { l.fail(err) }) // in a goroutine, since it calls the plugin
		return nil
	}
	from, _ := netip.ParseAddr(e.GetAccepted().GetFrom()) // any other text is not an address
	select {
	case l.announced <- announcement{i, e.GetAccepted().GetLinkId(), from.WithZone("")}:
		return nil
	default:
		return errAnnounced
	}
}

// serve turns announced links into ready ones until the listener is closed.
func (l *listener) serve() {
	defer l.discard()
	for {
		select {
		case <-l.done:
			return
		case a := <-l.announced:
			x, err := a.inst.open(l.ctx, opening{a.link, l.pinned, "accept", l.address})
			if err != nil {
				// The peer sees the end of the link and dials again.
				l.p.log.Debug("accepted link is lost", "address", l.address, "error", err)
				continue
			}
			select {
			case l.ready <- arrival{x, a.from}:
			case <-l.done:
				x.Close()
				return
			}
		}
	}
}

// discard closes the links that were not accepted by the user. StopListen closes those in
// the plugin.
func (l *listener) discard() {
	for {
		select {
		case x := <-l.ready:
			x.Close()
		default:
			return
		}
	}
}

// listen opens l in the plugin. reopen is the address that it must have again, or "".
func (i *instance) listen(ctx context.Context, l *listener, reopen string) error {
	req := &proto.ListenRequest{
		Call: i.call(ctx), Host: l.spec.Host, Port: uint32(l.spec.Port), Dir: l.spec.Dir, Name: l.spec.Name, Reopen: reopen,
		IpChannel: l.spec.IPChannel,
	}
	answer, err := i.rpc.Listen(ctx, req)
	if err != nil {
		i.abandon(req.Call)
		return i.broken(ctx, "Listen", err)
	}
	if answer.GetError() != nil {
		return answer.GetError().TransportError(i.cfg.Name, "listen", place(l.spec))
	}
	if reopen != "" && answer.GetAddress() != reopen {
		i.stopListen(answer.GetListenerId())
		return &transports.Error{Transport: i.cfg.Name, Op: "listen", Address: reopen, Code: transports.CodeAddress,
			Reason: "the restarted plugin listens at " + answer.GetAddress() + ", which no peer knows"}
	}
	if reopen == "" {
		l.address = answer.GetAddress() // before other goroutines use l
	}
	for _, e := range i.listeners.enter(answer.GetListenerId(), l) {
		if err := l.event(i, e); err != nil {
			i.stop(i.violation(err), 0)
			return i.err
		}
	}
	return nil
}

// Maximum time for which opening a listener again is tried while its address is in use, and the
// first and longest pause between tries.
const (
	reopenTime  = 30 * time.Second
	reopenFirst = 20 * time.Millisecond
	reopenPause = 500 * time.Millisecond
)

func (l *listener) reopen(ctx context.Context, inst *instance) error {
	err := inst.listen(ctx, l, l.address)
	if err == nil && l.reason() != nil { // l was closed meanwhile
		l.p.dropFrom(inst, l)
	}
	return err
}

// reopenLater tries again for as long as peers try to resume their links. While no process of the
// plugin had the port, the kernel may have given it to a connection of another program.
func (l *listener) reopenLater(inst *instance, err error) {
	end := time.NewTimer(reopenTime)
	defer end.Stop()
	l.p.log.Warn("the address of a listener is taken, and is tried again", "address", l.address, "for", reopenTime, "error", err)
	for wait := reopenFirst; temporary(err); wait = min(2*wait, reopenPause) {
		select {
		case <-time.After(wait):
			err = l.reopen(inst.ctx, inst)
			continue
		case <-end.C:
		case <-l.done:
			return
		case <-inst.ctx.Done(): // the next process opens it
			return
		}
		break
	}
	l.reopened(inst, err)
}

// reopened fails a listener that could not be opened again, unless the reason is the end of the
// plugin's process.
func (l *listener) reopened(inst *instance, err error) {
	if err != nil && !inst.useless() {
		l.p.log.Error("listener is lost", "address", l.address, "error", err)
		l.fail(l.p.failure("listen", l.address, err))
	}
}

func temporary(err error) bool {
	var e *transports.Error
	return errors.As(err, &e) && e.Retryable
}

// stopListen closes a listener in the plugin. Errors do not matter: a dead plugin does not
// listen.
func (i *instance) stopListen(id uint64) {
	ctx, cancel := context.WithTimeout(i.ctx, verdict)
	defer cancel()
	_, _ = i.rpc.StopListen(ctx, &proto.StopListenRequest{Call: i.call(ctx), ListenerId: id})
}
