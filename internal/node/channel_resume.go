package node

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/core/wire"
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

// attachChannel gives a switch its channel to a host.
func (n *node) attachChannel(h *ownHost, peer wire.HostRank, l link.Link) error {
	if !n.channelLasts(h.rank, peer) {
		return h.loop.attach(l, noRank, peer)
	}
	id := channelSession(&n.direct.token, h.rank, peer)
	var k *keeper
	var again func(error)
	if h.rank > peer { // who dials in the dance
		again = func(why error) { n.redial(h, peer, id, why, k) }
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
func (n *node) redial(h *ownHost, peer wire.HostRank, id dynamic.Session, why error, k *keeper) {
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
		l, reason := d.dialChannel(ctx, h, peer, id)
		switch {
		case l != nil:
			n.log.Info("a channel is resumed", "from", h.rank, "to", n.hostName(peer), "after", time.Since(began).Round(time.Millisecond))
			k.take(l)
		case d.ctx.Err() == nil:
			k.lose(reason)
		}
	})
}

// dialChannel tries until it succeeds, ctx ends, or the peer has no such channel
// any more.
func (d *directLinks) dialChannel(ctx context.Context, h *ownHost, peer wire.HostRank, id dynamic.Session) (l link.Link, reason string) {
	x := d.n.job.Hosts[peer]
	w := way{
		t:       d.n.channels,
		address: netip.AddrPortFrom(x.Address.Addr(), uint16(x.Port)).String(),
		from:    h.config.Address.String(),
	}
	hello := dynamic.Hello{Src: wire.WorldRank(h.rank), Dst: wire.WorldRank(peer), Session: id, Again: true, Hosts: true}
	for tries, wait := 1, firstAgain; ; tries, wait = tries+1, min(2*wait, lastAgain) {
		l, err := d.dialBy(ctx, w.t.Transport, &hello, w)
		if err == nil {
			return l, ""
		}
		if v := refused(err); v == dynamic.Leaving || v == dynamic.UnknownLink || v == dynamic.UnknownRank {
			return nil, fmt.Sprintf("%s says: %v", d.n.hostName(peer), v)
		}
		d.n.log.Debug("cannot resume a channel yet", "to", d.n.hostName(peer), "error", err)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, fmt.Sprintf("%s was dialled %d times within %v, at last: %v", d.n.hostName(peer), tries, d.n.resumeLimit(), err)
		}
	}
}

// acceptChannel takes a further connection of a channel.
func (d *directLinks) acceptChannel(ctx context.Context, l link.Link, g *dynamic.Acceptor, hello dynamic.Hello) error {
	k := d.n.keeperOf(hostPair{wire.HostRank(hello.Dst), wire.HostRank(hello.Src)}, hello.Session)
	if k == nil {
		g.Refuse(dynamic.UnknownLink)
	} else {
		g.Accept()
	}
	if err := converse(ctx, l, g, g.Done); err != nil {
		return err
	}
	if l.Handle() == link.NoHandle {
		return errors.Join(errNoHandle, l.Close())
	}
	k.take(l)
	return nil
}

// keeperOf finds a channel that somebody else dials again.
func (n *node) keeperOf(x hostPair, id dynamic.Session) *keeper {
	for _, h := range n.hosts {
		if h.rank != x.local || id != channelSession(&n.direct.token, x.local, x.peer) {
			continue
		}
		for _, k := range h.lasting {
			if k.p.host == x.peer && k.again == nil {
				return k
			}
		}
	}
	return nil
}
