package agent

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
)

// GreetingSize is the number of bytes that a foreign host sends before any packet on a connection
// that it made: its host rank, big-endian (IMPI ch.2, Host-to-host connections). A host of ours
// begins a greeting of core/dynamic instead, whose first bytes differ from any host rank.
const GreetingSize = 4

// ErrGreeting is wrapped by the reason why a connection is refused.
var ErrGreeting = errors.New("agent: not a host that is waited for")

// ErrEarly is why a host is refused that needs a channel on demand before the dance is over.
var ErrEarly = errors.New("agent: it asks for a channel on demand, but this host does not have all channels of the start yet")

// greeting is an accepted connection that has not greeted, or not proven itself, yet.
type greeting struct {
	conn    int
	from    wire.HostID
	b       [GreetingSize]byte
	n       int
	proving bool // b begins a greeting of core/dynamic
}

// Input consumes bytes that came on an accepted connection and returns the number of them that
// belonged to the greeting.
func (d *Dance) Input(conn int, b []byte) int {
	i := d.find(conn)
	if i < 0 || d.conns[i].proving {
		return 0
	}
	g := d.conns[i]
	n := copy(g.b[g.n:], b)
	g.n += n
	if g.n == GreetingSize {
		d.begun(g, i)
	}
	return n
}

// begun decides by the first bytes whether the peer sends the greeting of IMPI or begins a
// proof.
func (d *Dance) begun(g *greeting, i int) {
	if !dynamic.BeginsGreeting(g.b) {
		d.conns = slices.Delete(d.conns, i, i+1)
		d.greeted(g)
		return
	}
	if !d.expectsProof() {
		d.conns = slices.Delete(d.conns, i, i+1)
		d.refuse(g.conn, d.c.Self, "it greets like a host of an own site, but none of those connects to this host")
		return
	}
	g.proving = true
	d.steps = append(d.steps, Step{Kind: Prove, Conn: g.conn, Host: d.c.Self})
}

// greeted handles IMPI's greeting, a host rank (IMPI ch.2, Host-to-host connections).
func (d *Dance) greeted(g *greeting) {
	v := binary.BigEndian.Uint32(g.b[:])
	if uint64(v) >= uint64(len(d.c.Hosts)) {
		d.refuse(g.conn, d.c.Self, "it says it is host %d, but the job has %d hosts", v, len(d.c.Hosts))
		return
	}
	h := wire.HostRank(v)
	why := d.unfit(g.from, h)
	switch {
	case why != "":
	case d.c.Hosts[h].Proves:
		why = fmt.Sprintf("it says it is host %d and does not prove it, as hosts of our own sites do", h)
	case d.joined[h]:
		why = fmt.Sprintf("it says it is host %d, which has connected before", h)
	default:
		d.join(g.conn, h)
		return
	}
	d.failed[h] = fmt.Errorf("%w: a connection was refused: %s", ErrGreeting, why)
	d.refuse(g.conn, h, "%s", why)
}

// unfit returns why a connection from that address cannot be the channel to host h, or "" if it
// can.
func (d *Dance) unfit(from wire.HostID, h wire.HostRank) string {
	switch {
	case h < 0 || int(h) >= len(d.c.Hosts):
		return fmt.Sprintf("it says it is host %d, but the job has %d hosts", h, len(d.c.Hosts))
	case h <= d.c.Self:
		return fmt.Sprintf("it says it is host %d, which does not connect to host %d", h, d.c.Self)
	case d.c.Hosts[h].Skip:
		return fmt.Sprintf("it says it is host %d, to which there is no channel", h)
	case !d.c.Hosts[h].at(from):
		return fmt.Sprintf("it says it is host %d, whose address is %v, but comes from %v%s",
			h, d.c.Hosts[h], from.Addr(), d.c.Hosts[h].remedy())
	}
	return ""
}

// at reports whether host h may connect from that address. The two ways to embed an IPv4
// address are equal. The zero address, of a link that does not tell one, always may: the
// driver has to check such links.
func (h *DanceHost) at(from wire.HostID) bool {
	if from == (wire.HostID{}) || from == h.Address {
		return true
	}
	a := from.Addr()
	if a == h.Address.Addr() {
		return true
	}
	return slices.ContainsFunc(h.From, func(p netip.Prefix) bool { return p.Contains(a) })
}

func (h *DanceHost) remedy() string {
	if h.Proves {
		return ""
	}
	return `: if it has several addresses, list this one in channels_from in its site's block`
}

// Admits returns Accepted if a connection whose greeting has proven that it is host h may become
// the channel to it. The driver then answers the peer and calls Proven; otherwise it refuses the
// peer with the verdict, and why says the reason. A host to which the channel is made on demand is
// Busy: it dials again, when the dance is over.
func (d *Dance) Admits(conn int, h wire.HostRank) (v dynamic.Verdict, why error) {
	i := d.find(conn)
	if i < 0 || !d.conns[i].proving {
		return dynamic.NotAllowed, fmt.Errorf("%w: the proof came too late", ErrGreeting)
	}
	if h >= 0 && int(h) < len(d.c.Hosts) && h != d.c.Self && d.c.Hosts[h].Skip && d.c.Hosts[h].Proves {
		return dynamic.Busy, ErrEarly
	}
	if why := d.unfit(d.conns[i].from, h); why != "" {
		return dynamic.NotAllowed, fmt.Errorf("%w: %s", ErrGreeting, why)
	}
	if !d.c.Hosts[h].Proves {
		return dynamic.NotAllowed, fmt.Errorf("%w: it proves that it is host %d, which has nothing to prove it with", ErrGreeting, h)
	}
	return dynamic.Accepted, nil
}

// Proven records that the greeting on conn, which Admits allowed, is over. If host h has connected
// before, conn replaces the earlier connection, which the host has given up. If Proven returns
// false, the driver closes conn.
func (d *Dance) Proven(conn int, h wire.HostRank) bool {
	if v, _ := d.Admits(conn, h); v != dynamic.Accepted {
		return false
	}
	i := d.find(conn)
	d.conns = slices.Delete(d.conns, i, i+1)
	d.arrive(conn, h)
	return true
}

// ProvenElsewhere records that host h has proven itself at another listener than that of the
// channels, and that conn leads to it. If it returns false, the driver closes conn.
func (d *Dance) ProvenElsewhere(conn int, h wire.HostRank) bool {
	if d.over || d.unfit(wire.HostID{}, h) != "" || !d.c.Hosts[h].Proves {
		return false
	}
	d.arrive(conn, h)
	return true
}

func (d *Dance) arrive(conn int, h wire.HostRank) {
	if !d.joined[h] {
		d.join(conn, h)
		return
	}
	d.steps = append(d.steps, Step{Kind: Joined, Conn: conn, Host: h})
}

// Closed records that conn ended before its greeting was complete. Once it is a channel,
// Agent.Closed has to be called instead. A connection that was refused is ignored.
func (d *Dance) Closed(conn int, cause error) {
	i := d.find(conn)
	if i < 0 {
		return
	}
	g := d.conns[i]
	d.conns = slices.Delete(d.conns, i, i+1)
	cause = cmp.Or(cause, io.EOF)
	err := fmt.Errorf("%w: the greeting %w after %d of %d bytes: %w", ErrGreeting, ErrTruncated, g.n, GreetingSize, cause)
	if g.proving {
		err = fmt.Errorf("%w: it has not proven who it is: %w", ErrGreeting, cause)
	}
	d.steps = append(d.steps, Step{Kind: Refuse, Conn: conn, Host: d.c.Self, Err: err})
}

func (d *Dance) refuse(conn int, h wire.HostRank, why string, args ...any) {
	d.steps = append(d.steps, Step{Kind: Refuse, Conn: conn, Host: h,
		Err: fmt.Errorf("%w: %s", ErrGreeting, fmt.Sprintf(why, args...))})
}
