package channel

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/connmgr/dial"
	"github.com/openimpi/impi/plugins/sdk/link"
)

func (d *dancer) add(l link.Link) (conn int) {
	conn = d.numbered
	d.numbered++
	d.conns[conn] = &danceConn{l: l}
	return conn
}

// take removes a connection about which the dance has decided, and returns it.
func (d *dancer) take(conn int) *danceConn {
	c := d.conns[conn]
	delete(d.conns, conn)
	return c
}

func (c *danceConn) handOn() (l link.Link) {
	l, c.l = c.l, nil
	return l
}

// close closes the link, which nothing reads any more.
func (c *danceConn) close() {
	if l := c.handOn(); l != nil {
		_ = l.Close()
	}
}

// drop closes the link as soon as nothing reads it.
func (c *danceConn) drop() {
	if c.dropped = true; c.cancel != nil {
		c.cancel()
		return
	}
	c.close()
}

func (d *dancer) accept() {
	for {
		l, err := d.h.Channel.Accept(d.ctx)
		if err != nil {
			if d.ctx.Err() == nil {
				d.tell(func() { d.c.Log.Error("no channel can arrive any more", "host", d.h.Config.Address, "error", err) })
			}
			return
		}
		d.c.Routes.Channels.Plugin.CountLink()
		if !d.tell(func() { d.greet(l) }) {
			_ = l.Close()
			return
		}
	}
}

// read has another goroutine read a connection, and goes on with then, unless that
// fails or the dance has refused the connection meanwhile.
func (d *dancer) read(conn int, read func(context.Context, link.Link) error, then func()) {
	ctx, cancel := context.WithCancel(d.ctx)
	c := d.conns[conn]
	c.cancel = cancel
	l := c.l
	d.wg.Go(func() {
		defer cancel()
		err := read(ctx, l)
		d.tell(func() {
			switch c.cancel = nil; {
			case c.dropped:
				c.close()
			case err != nil:
				d.dance.Closed(conn, err)
			default:
				then()
			}
		})
	})
}

// greet reads what begins a greeting, and not a byte behind it.
func (d *dancer) greet(l link.Link) {
	conn := d.add(l)
	d.dance.Accepted(conn, source(l))
	first := &d.conns[conn].first
	d.read(conn, func(ctx context.Context, l link.Link) error {
		t, err := dial.NewBlocking(ctx, l)
		if err == nil {
			err = t.ReadFull(first[:])
		}
		return err
	}, func() {
		if err := d.c.Routes.CheckPlainGreeting(binary.BigEndian.Uint32(first[:])); err != nil {
			d.dance.Closed(conn, err)
		} else {
			d.dance.Input(conn, first[:])
		}
	})
}

func (d *dancer) prove(conn int) {
	var from wire.HostRank
	c := d.conns[conn]
	first := c.first
	d.read(conn, func(ctx context.Context, l link.Link) (err error) {
		ctx, cancel := context.WithTimeout(ctx, dynamic.GreetLimit)
		defer cancel()
		from, err = d.proof(ctx, conn, l, first[:])
		return err
	}, func() {
		if !d.dance.Proven(conn, from) {
			c.close()
		}
	})
}

func (d *dancer) proof(ctx context.Context, conn int, l link.Link, first []byte) (from wire.HostRank, err error) {
	at := d.c.Site.ChannelListener(d.h.Host)
	g := dynamic.NewAcceptor(d.c.Keys(at), dial.Nonce())
	if _, err := g.Input(first); err != nil {
		return from, err
	}
	known := func() bool { _, ok := g.Peer(); return ok }
	if err := dial.Greet(ctx, l, g, known); err != nil {
		return from, err
	}
	hello, _ := g.Peer()
	from = wire.HostRank(hello.Src)
	verdict := d.c.admits(l, hello, at)
	var why error
	if verdict == dynamic.Accepted {
		verdict, why = d.admits(conn, from)
	}
	return from, errors.Join(why, dial.Answer(ctx, l, g, verdict))
}

// admits asks the dance; it is called by another goroutine.
func (d *dancer) admits(conn int, h wire.HostRank) (v dynamic.Verdict, why error) {
	asked := make(chan struct{})
	if !d.tell(func() { v, why = d.dance.Admits(conn, h); close(asked) }) {
		return dynamic.NotAllowed, context.Cause(d.ctx)
	}
	<-asked
	return v, why
}

// join takes a link from a host that has greeted at another listener than that of the channels.
// It returns false if the dance is over.
func (d *dancer) join(l link.Link, from wire.HostRank) bool {
	return d.tell(func() {
		if conn := d.add(l); !d.dance.ProvenElsewhere(conn, from) {
			d.take(conn).close()
		}
	})
}

func source(l link.Link) wire.HostID {
	p, ok := l.(interface{ Peer() string })
	if !ok {
		return wire.HostID{}
	}
	_, address, _ := strings.Cut(p.Peer(), " ")
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return wire.HostID{}
	}
	return wire.HostIDFrom(a.Addr(), wire.IPv4Compatible)
}
