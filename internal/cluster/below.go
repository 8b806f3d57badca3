package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/openimpi/impi/core/membership"
	"github.com/openimpi/impi/internal/cluster/neighbour"
	"github.com/openimpi/impi/internal/listen"
	"github.com/openimpi/impi/internal/rpc"
	"github.com/openimpi/impi/internal/rpc/auth"
	"github.com/openimpi/impi/internal/rpc/proto"
)

// listen accepts connections of hosts below, if there are to be any. The head accepts connections
// of all hosts, which ask it who their parent is.
func (h *Host) listen() (err error) {
	first, end := h.cfg.Tree.Children(h.cfg.Self)
	if first == end {
		return nil
	}
	if h.ln = h.cfg.Listener; h.ln == nil {
		at, err := netip.ParseAddrPort(h.cfg.Listen)
		if err == nil {
			h.ln, err = listen.TCP(h.ctx, net.ListenConfig{}, at, h.cfg.Ports)
		}
		if err != nil {
			return fmt.Errorf("host %s cannot accept connections of other hosts: %w", h.cfg.Name(h.cfg.Self), err)
		}
	}
	if h.auth, err = auth.New(auth.Config{Kind: &kind, Keys: auth.Keys{Key: h.cfg.Secret, Identity: h.cfg.Identity}, Files: 1, Logger: h.log}); err != nil {
		return errors.Join(err, h.ln.Close())
	}
	h.server = rpc.NewServer(rpc.Limits{Request: maxWord, Greet: greeting, Silence: 2 * greeting})
	h.proved = rpc.NewListener()
	proto.RegisterClusterServer(h.server, parent{h: h})
	h.wg.Go(func() { _ = h.server.Serve(h.proved) })
	h.wg.Go(h.accept)
	return nil
}

func (h *Host) accept() {
	for {
		nc, err := h.ln.Accept()
		if err != nil {
			if h.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			select {
			case <-time.After(100 * time.Millisecond): // for example, there are no descriptors left
			case <-h.ctx.Done():
				return
			}
			continue
		}
		h.wg.Go(func() {
			safe, err := h.auth.Accept(nc)
			if err != nil {
				_ = nc.Close()
				parent{h: h}.denied(nc.RemoteAddr(), err)
				return
			}
			parent{h: h}.serve(safe)
		})
	}
}

type peer struct {
	refused error        // why its certificate is rejected; nil: accepted
	told    atomic.Int32 // host that got a message that it has no place, once it hangs up; 0: none
}

type parent struct {
	proto.UnimplementedClusterServer
	h *Host
}

// knows checks that a host may be part of this site, and logs why not.
func (p parent) knows(ctx context.Context, n *proto.Newcomer) error {
	err := p.judge(ctx, n)
	if err != nil {
		why := status.Convert(err).Message()
		p.h.log.Warn("refused a host", "number", n.GetHost(), "reason", why)
		if host := int(n.GetHost()); p.misses(host) {
			rpc.PeerOf(ctx).(*peer).told.Store(n.GetHost())
			p.unfit(host, errors.New(why))
		}
	}
	return err
}

func (p parent) judge(ctx context.Context, n *proto.Newcomer) error {
	h := p.h
	host := int(n.GetHost())
	h.mu.Lock()
	over := h.ended
	h.mu.Unlock()
	switch {
	case over:
		return status.Error(codes.Aborted, ErrOver.Error())
	case host <= h.cfg.Self || host >= h.cfg.Tree.Hosts:
		return status.Errorf(codes.FailedPrecondition, "%v: host %d of %d", membership.ErrUnknownHost, host, h.cfg.Tree.Hosts)
	case n.GetVersion() != h.cfg.Version:
		return status.Errorf(codes.FailedPrecondition, "%v: %s has %q, %s has %q; install the same on both", ErrVersion, h.cfg.Name(host), n.GetVersion(), h.cfg.Name(h.cfg.Self), h.cfg.Version)
	case !bytes.Equal(n.GetFile(), h.cfg.File):
		return status.Errorf(codes.FailedPrecondition, "%v: the files of %s and %s describe the site differently; copy one of them to both", ErrFile, h.cfg.Name(host), h.cfg.Name(h.cfg.Self))
	}
	if why := h.cfg.otherPlugin(host, n.GetPlugins()); why != "" {
		return status.Errorf(codes.FailedPrecondition, "%v: %s", ErrPlugins, why)
	}
	if why := refused(ctx); why != nil {
		return status.Error(codes.FailedPrecondition, h.cfg.notAccepted(h.cfg.Self, host, why).Error())
	}
	return nil
}

// otherPlugin says which of a host's plugins differs from ours, and what to do about it, or returns
// "" if none does. Hosts of one platform must have the same file.
func (c *Config) otherPlugin(host int, theirs []*proto.Plugin) string {
	for _, p := range theirs {
		i := slices.IndexFunc(c.Plugins, func(o *proto.Plugin) bool { return o.GetTransport() == p.GetTransport() })
		if i < 0 {
			continue
		}
		own := c.Plugins[i]
		remedy := fmt.Sprintf("copy impi.lock.hcl of %s to %s, and run impi-node plugins install there", c.Name(c.Self), c.Name(host))
		switch {
		case own.GetVersion() != p.GetVersion():
			return fmt.Sprintf("%s has %.32s %.64s, %s has %s; %s", c.Name(host), p.GetTransport(), p.GetVersion(), c.Name(c.Self), own.GetVersion(), remedy)
		case own.GetPlatform() == p.GetPlatform() && own.GetSha256() != p.GetSha256():
			return fmt.Sprintf("%s and %s have different files of %s %s; %s", c.Name(host), c.Name(c.Self), own.GetTransport(), own.GetVersion(), remedy)
		}
	}
	return ""
}

// refused returns why the certificate of a request's sender is not accepted, or nil if it is.
func refused(ctx context.Context) error {
	return rpc.PeerOf(ctx).(*peer).refused
}

// denied, at the head, tells the owner that a host has another secret, if the connection comes from
// the address of a host that is still missing.
func (p parent) denied(from net.Addr, err error) {
	at, ok := from.(*net.TCPAddr)
	if !ok || p.h.cfg.HostAt == nil || !errors.Is(err, ErrSecret) {
		return
	}
	if host, known := p.h.cfg.HostAt(at.AddrPort().Addr().Unmap()); known && p.misses(host) {
		p.inform(host)
		p.unfit(host, fmt.Errorf("%w: %s has another key; copy the key's file to both", ErrSecret, p.h.cfg.Name(host)))
	}
}

// unfit tells the owner, at the head, that a host which is not there cannot be part of the site.
func (p parent) unfit(host int, why error) {
	if p.h.up == nil {
		p.h.cfg.Owner.Unfit(host, why)
	}
}

func (p parent) misses(host int) bool {
	p.h.mu.Lock()
	defer p.h.mu.Unlock()
	return slices.Contains(p.h.member.Missing(), host)
}

// inform records, at the head, that a host knows why it cannot be part of the site.
func (p parent) inform(host int) {
	p.h.mu.Lock()
	defer p.h.mu.Unlock()
	p.h.informed[host] = true
	p.changed()
}

// changed wakes those who wait for a change of listens, ended or informed. It is called with the
// host's lock.
func (p parent) changed() {
	close(p.h.placed)
	p.h.placed = make(chan struct{})
}

// Place returns to a host where its parent listens, as soon as the parent has a place.
func (p parent) Place(ctx context.Context, n *proto.Newcomer) (*proto.Parent, error) {
	h := p.h
	host := int(n.GetHost())
	fails := n.GetFails()
	h.mu.Lock()
	over := h.ended
	if host < h.cfg.Tree.Hosts { // bounds what an unproved host may add
		h.called[host] = true
	}
	h.mu.Unlock()
	switch {
	case over: // handled below
	case fails == nil:
		if err := p.knows(ctx, n); err != nil {
			return nil, err
		}
	case !p.misses(host):
		return nil, status.Errorf(codes.Aborted, "host %d: %v", host, membership.ErrTwice)
	default:
		h.cfg.Owner.Fails(host, fails)
	}
	for {
		h.mu.Lock()
		at := neighbour.ParentOf(h.cfg.Tree, host, h.listens)
		placed, over, verdict := h.placed, h.ended, h.verdict
		h.mu.Unlock()
		switch {
		case over:
			rpc.PeerOf(ctx).(*peer).told.Store(int32(host))
			return &proto.Parent{Ended: true, Over: verdict}, nil
		case fails != nil:
		case at != nil:
			return at, nil
		}
		select {
		case <-placed:
		case <-h.broken:
			return nil, status.Error(codes.Aborted, h.failed.Error())
		case <-h.ctx.Done():
			return nil, status.Error(codes.Aborted, ErrOver.Error())
		case <-ctx.Done():
			return nil, status.Errorf(codes.Unavailable, "host %s, its parent, has not joined yet", h.cfg.Name(h.cfg.Tree.Parent(host)))
		}
	}
}

// Attach serves a child's connection.
func (p parent) Attach(stream proto.Cluster_AttachServer) error {
	h := p.h
	w, err := stream.Recv()
	if err != nil {
		return err
	}
	hello, ok := w.GetWord().(*proto.Up_Hello)
	if !ok {
		return status.Error(codes.InvalidArgument, "the first message is not a hello")
	}
	if err := p.knows(stream.Context(), hello.Hello); err != nil {
		return err
	}
	child := int(hello.Hello.GetHost())
	q := newQueue[*proto.Down]()
	q.add(neighbour.BeatDown) // sent before everything else; it accepts the child
	err = h.take(func(m *membership.Member, now time.Time) error {
		if h.ended { // the job may have ended since knows checked
			return ErrOver
		}
		if err := m.Attach(child, now); err != nil {
			return err
		}
		h.below[child] = q
		return nil
	})
	if errors.Is(err, ErrOver) {
		return status.Error(codes.Unavailable, ErrOver.Error()) // it reconnects, and the head sends it the result
	}
	if err != nil {
		err = fmt.Errorf("host %s: %w; it may be of another job with the same head and key", h.cfg.Name(child), err)
		h.log.Warn("refused a host", "other", h.cfg.Name(child), "reason", err)
		return status.Error(codes.Aborted, err.Error())
	}
	h.log.Debug("a host has joined", "host", h.cfg.Name(child))
	done := make(chan error, 1)
	go func() { done <- h.hearChild(child, stream) }()
	_ = q.drain(stream.Context().Done(), stream.Send) // hearChild notices a broken connection
	return <-done
}

func (h *Host) hearChild(child int, stream proto.Cluster_AttachServer) error {
	for {
		w, err := stream.Recv()
		if err == nil {
			err = h.fromChild(child, w)
		}
		if err != nil {
			why := err
			if c := status.Code(err); errors.Is(err, io.EOF) || c == codes.Canceled || c == codes.Unavailable {
				why = errors.New("its connection has ended")
			}
			h.with(func(m *membership.Member, now time.Time) {
				h.gone[child] = struct{}{}
				h.below[child].end()
				m.Disconnected(child, why, now)
			})
			select {
			case h.left <- struct{}{}:
			default:
			}
			return err
		}
	}
}

func (h *Host) fromChild(child int, w *proto.Up) error {
	var forHead bool
	err := h.take(func(m *membership.Member, now time.Time) (err error) {
		forHead, err = neighbour.FromChild(m, child, w, now)
		switch w.GetWord().(type) {
		case *proto.Up_Stays:
			h.stayed = now
		case *proto.Up_Bye:
			h.gone[child] = struct{}{}
			h.below[child].end()
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case forHead && h.up != nil:
		h.up.tell(w)
		return nil
	}
	switch x := w.GetWord().(type) {
	case *proto.Up_Listens:
		h.mu.Lock()
		defer h.mu.Unlock()
		h.listens[int(x.Listens.GetHost())] = x.Listens.GetAddress()
		parent{h: h}.changed()
	case *proto.Up_Fails:
		h.cfg.Owner.Fails(int(x.Fails.GetHost()), x.Fails.GetData())
	case *proto.Up_Answer:
		h.mu.Lock()
		defer h.mu.Unlock()
		h.asks.Answer(x.Answer)
	case *proto.Up_Asks:
		h.askFor(x.Asks)
	case *proto.Up_Bye:
		select {
		case h.left <- struct{}{}:
		default:
		}
	}
	return nil
}
