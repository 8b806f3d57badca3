package node

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/transports"
)

// hostPair is one of our hosts and another.
type hostPair struct{ local, peer wire.HostRank }

// channelSession names the channel between two hosts: both know it without a word,
// and nobody else does.
func channelSession(token *dynamic.Token, a, b wire.HostRank) (s dynamic.Session) {
	h := hmac.New(sha256.New, token[:])
	h.Write([]byte("impi channel: session"))
	_ = binary.Write(h, binary.BigEndian, []int32{int32(min(a, b)), int32(max(a, b))}) // a hash takes all
	copy(s[:], h.Sum(nil))
	return s
}

// channelLasts tells whether both hosts want the channel between them to last.
// Only hosts of ours have cards, and those of a job with others have none.
func (n *node) channelLasts(a, b wire.HostRank) bool {
	ra, rb := n.firstOf(a), n.firstOf(b)
	return ra >= 0 && rb >= 0 && n.lasts(ra, rb)
}

// firstOf is the lowest rank of a host's procs, or noRank.
func (n *node) firstOf(h wire.HostRank) wire.WorldRank {
	for r, p := range n.job.Procs {
		if p.Host == h {
			return wire.WorldRank(r)
		}
	}
	return noRank
}

// prompt is a link that can be had to acknowledge at once, as socket.Link can.
type prompt interface{ AckAtOnce() }

// attachChannel gives a switch its channel to a host.
func (n *node) attachChannel(h *ownHost, peer wire.HostRank, l link.Link) error {
	if !n.channelLasts(h.rank, peer) {
		if x, ok := l.(prompt); ok && !n.job.Clients[n.job.Hosts[peer].Client].Own {
			x.AckAtOnce() // LAM/MPI writes packets in pieces, with Nagle's algorithm
		}
		return h.loop.attach(l, noRank, peer)
	}
	id := channelSession(&n.direct.token, h.rank, peer)
	var k *keeper
	var again func(error)
	if h.rank > peer { // who dials in the dance
		again = func(why error) { n.redial(h, peer, why, k) }
	}
	k, err := h.loop.attachLasting(l, peer, resume.Session(id), n.resumeLimit(), again)
	if err != nil {
		return err
	}
	h.lasting = append(h.lasting, k)
	return nil
}

// keepsListening tells whether a host is dialled again for a channel that lasts,
// and has that heard.
func (n *node) keepsListening(h *ownHost, channels map[wire.HostRank]link.Link) bool {
	for peer := range channels {
		if peer > h.rank && n.channelLasts(h.rank, peer) {
			l := directListener{Listener: h.channel, t: n.channels, hosts: true}
			n.direct.wg.Go(func() { n.direct.serve(l) })
			return true
		}
	}
	return false
}

// redial makes a further connection for a channel, in the background.
func (n *node) redial(h *ownHost, peer wire.HostRank, why error, k *keeper) {
	d := n.direct
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	n.log.Warn("a channel is lost and dialled again", "from", h.rank, "to", n.hostName(peer), "reason", why)
	d.wg.Go(func() {
		ctx, cancel := context.WithTimeout(d.ctx, n.resumeLimit())
		defer cancel()
		began := time.Now()
		l, reason := d.dialChannel(ctx, h, peer)
		switch {
		case l != nil:
			n.log.Info("a channel is resumed", "from", h.rank, "to", n.hostName(peer), "after", time.Since(began).Round(time.Millisecond))
			k.take(l)
		case d.ctx.Err() == nil:
			k.lose(reason)
		}
	})
}

// channelHello is what a host says to another one by a direct link's greeting.
func (d *directLinks) channelHello(h *ownHost, peer wire.HostRank) dynamic.Hello {
	return dynamic.Hello{
		Src: wire.WorldRank(h.rank), Dst: wire.WorldRank(peer),
		Session: channelSession(&d.token, h.rank, peer), Again: true, Hosts: true,
	}
}

// dialHost makes a connection for a channel by a way.
func (d *directLinks) dialHost(ctx context.Context, h *ownHost, peer wire.HostRank, w way) (link.Link, error) {
	hello := d.channelHello(h, peer)
	t := transports.Transport(w.t)
	if r := d.n.firstOf(peer); r >= 0 && !w.plain {
		t = d.n.pinned(w.t, r)
	}
	return d.dialBy(ctx, t, &hello, w)
}

// redialWays lists how a channel may be made again.
func (d *directLinks) redialWays(h *ownHost, peer wire.HostRank) []way {
	ways, must := d.n.channelWays(h, peer)
	if must {
		return ways
	}
	x := d.n.job.Hosts[peer]
	return append(ways, way{
		t:       d.n.channels,
		address: netip.AddrPortFrom(x.Address.Addr(), uint16(x.Port)).String(),
		from:    h.config.Address.String(),
		plain:   true,
	})
}

// dialChannel tries until it succeeds, ctx ends, or the peer has no such channel
// any more.
func (d *directLinks) dialChannel(ctx context.Context, h *ownHost, peer wire.HostRank) (l link.Link, reason string) {
	for tries, wait := 1, firstAgain; ; tries, wait = tries+1, min(2*wait, lastAgain) {
		var reasons []string
		for _, w := range d.redialWays(h, peer) {
			l, err := d.dialHost(ctx, h, peer, w)
			if err == nil {
				return l, ""
			}
			if v := refused(err); v == dynamic.Leaving || v == dynamic.UnknownLink || v == dynamic.UnknownRank {
				return nil, fmt.Sprintf("%s says: %v", d.n.hostName(peer), v)
			}
			reasons = append(reasons, fmt.Sprintf("%s at %s: %v", w.t.name, w.address, err))
		}
		d.n.log.Debug("cannot resume a channel yet", "to", d.n.hostName(peer), "reasons", reasons)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, fmt.Sprintf("%s was dialled %d times within %v, at last: %s", d.n.hostName(peer), tries, d.n.resumeLimit(), strings.Join(reasons, "; "))
		}
	}
}

// acceptChannel takes a connection of a channel, the first or a further one.
func (d *directLinks) acceptChannel(ctx context.Context, l link.Link, g *dynamic.Acceptor, hello dynamic.Hello, t *transport) error {
	take, verdict := d.judgeChannel(ctx, l, hello, t)
	if verdict == dynamic.Accepted && l.Handle() == link.NoHandle {
		verdict = dynamic.NotAllowed
	}
	if verdict == dynamic.Accepted {
		g.Accept()
	} else {
		g.Refuse(verdict)
	}
	if err := converse(ctx, l, g, g.Done); err != nil {
		return err
	}
	if !take(l) {
		return context.Cause(d.ctx)
	}
	return nil
}

// judgeChannel decides about a connection between hosts, and gives who takes it.
func (d *directLinks) judgeChannel(ctx context.Context, l link.Link, hello dynamic.Hello, t *transport) (take func(link.Link) bool, v dynamic.Verdict) {
	x := hostPair{wire.HostRank(hello.Dst), wire.HostRank(hello.Src)}
	h := d.n.hostOf(x.local)
	switch {
	case h == nil || x.peer <= x.local || int(x.peer) >= len(d.n.job.Hosts):
		return nil, dynamic.UnknownRank // hosts connect to those of lower rank
	case hello.Session != channelSession(&d.token, x.local, x.peer):
		return nil, dynamic.UnknownLink
	case !d.n.allowsChannel(x.peer, l, t):
		return nil, dynamic.NotAllowed
	}
	if dance := h.dancing.Load(); dance != nil {
		return func(l link.Link) bool { return dance.join(l, x.peer) }, dynamic.Accepted
	}
	if !d.awaitReady(ctx) {
		return nil, dynamic.Leaving
	}
	if k := d.n.keeperOf(x); k != nil {
		return func(l link.Link) bool { k.take(l); return true }, dynamic.Accepted
	}
	return nil, dynamic.UnknownLink
}

// hostOf gives the local host of a rank, or nil.
func (n *node) hostOf(rank wire.HostRank) *ownHost {
	for _, h := range n.hosts {
		if h.rank == rank {
			return h
		}
	}
	return nil
}

// keeperOf finds a channel that somebody else dials again.
func (n *node) keeperOf(x hostPair) *keeper {
	for _, k := range n.hostOf(x.local).lasting {
		if k.p.host == x.peer && k.again == nil {
			return k
		}
	}
	return nil
}
