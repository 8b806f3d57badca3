package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/openimpi/impi/core/wire"
)

// GreetingSize is how many bytes a host sends on a connection that it made,
// before any packet: its host rank, big-endian.
const GreetingSize = 4

// ErrGreeting is wrapped by the reason why a connection is refused.
var ErrGreeting = errors.New("agent: not a host that is waited for")

// greeting is what came on an accepted connection so far.
type greeting struct {
	conn int
	from wire.HostID
	b    [GreetingSize]byte
	n    int
}

// Accepted says that somebody connected, from that address if it is not zero.
// A new connection drives out the oldest silent one when there are many more
// than hosts to come.
func (d *Dance) Accepted(conn int, from wire.HostID) {
	switch {
	case d.over && d.missing > 0:
		d.refuse(conn, d.c.Self, "the time for the dance is over")
		return
	case !d.awaits():
		d.refuse(conn, d.c.Self, "every host that was to connect has done so")
		return
	}
	if len(d.conns) >= d.maxSilent() {
		old := d.conns[0]
		d.conns = d.conns[1:]
		d.refuse(old.conn, d.c.Self, "it said nothing while %d others connected", d.maxSilent())
	}
	d.conns = append(d.conns, &greeting{conn: conn, from: from})
}

// maxSilent bounds the connections that have not greeted.
func (d *Dance) maxSilent() int { return 2*len(d.c.Hosts) + 16 }

// awaits tells whether any host of higher rank is missing.
func (d *Dance) awaits() bool {
	return !d.over && slices.Contains(d.joined[d.c.Self:], false)
}

// Wants tells how many bytes the dance still wants from conn. The driver must not
// take more from the connection: packets follow.
func (d *Dance) Wants(conn int) int {
	if i := d.find(conn); i >= 0 {
		return GreetingSize - d.conns[i].n
	}
	return 0
}

func (d *Dance) find(conn int) int {
	return slices.IndexFunc(d.conns, func(g *greeting) bool { return g.conn == conn })
}

// Input takes bytes that came on an accepted connection and tells how many of
// them belonged to the greeting.
func (d *Dance) Input(conn int, b []byte) int {
	i := d.find(conn)
	if i < 0 {
		return 0
	}
	g := d.conns[i]
	n := copy(g.b[g.n:], b)
	g.n += n
	if g.n == GreetingSize {
		d.conns = slices.Delete(d.conns, i, i+1)
		d.greeted(g)
	}
	return n
}

// greeted judges a complete greeting.
func (d *Dance) greeted(g *greeting) {
	v := binary.BigEndian.Uint32(g.b[:])
	if uint64(v) >= uint64(len(d.c.Hosts)) {
		d.refuse(g.conn, d.c.Self, "it says it is host %d, but the job has %d hosts", v, len(d.c.Hosts))
		return
	}
	h := wire.HostRank(v)
	switch {
	case h <= d.c.Self:
		d.refuse(g.conn, h, "it says it is host %d, which does not connect to host %d", h, d.c.Self)
	case d.c.Hosts[h].Skip:
		d.refuse(g.conn, h, "it says it is host %d, to which there is no channel", h)
	case d.joined[h]:
		d.refuse(g.conn, h, "it says it is host %d, which has connected before", h)
	case !d.plausible(g.from, h):
		d.refuse(g.conn, h, "it says it is host %d, whose address is %v, but comes from %v", h, d.c.Hosts[h], DanceHost{Address: g.from})
	default:
		d.join(g.conn, h)
	}
}

// plausible tells whether host h may connect from that address. The two ways to
// embed an IPv4 address are equal.
func (d *Dance) plausible(from wire.HostID, h wire.HostRank) bool {
	want := d.c.Hosts[h].Address
	if !d.c.CheckSource || from == (wire.HostID{}) || from == want {
		return true
	}
	a, ok := from.IPv4()
	b, also := want.IPv4()
	return ok && also && a == b
}

// Closed says that conn ended before its greeting was complete, or by itself
// after Refuse. For a channel the agent's Closed is the place.
func (d *Dance) Closed(conn int, cause error) {
	i := d.find(conn)
	if i < 0 {
		return
	}
	g := d.conns[i]
	d.conns = slices.Delete(d.conns, i, i+1)
	if cause == nil {
		cause = io.EOF
	}
	d.steps = append(d.steps, Step{Kind: Refuse, Conn: conn, Host: d.c.Self,
		Err: fmt.Errorf("%w: the greeting %w after %d of %d bytes: %w", ErrGreeting, ErrTruncated, g.n, GreetingSize, cause)})
}

func (d *Dance) refuse(conn int, h wire.HostRank, why string, args ...any) {
	d.steps = append(d.steps, Step{Kind: Refuse, Conn: conn, Host: h,
		Err: fmt.Errorf("%w: %s", ErrGreeting, fmt.Sprintf(why, args...))})
}
