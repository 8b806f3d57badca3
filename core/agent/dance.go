package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/core/wire"
)

// GreetingSize is how many bytes a host sends on a connection that it made,
// before any packet: its host rank, big-endian.
const GreetingSize = 4

// ErrGreeting is wrapped by the reason why a connection is refused.
var ErrGreeting = errors.New("agent: not a host that is waited for")

// ErrMissing is wrapped by the error of a dance that ran out of time.
var ErrMissing = errors.New("agent: hosts did not connect in time")

// DanceHost is a host as the dance sees it.
type DanceHost struct {
	Address wire.HostID // H_IPV6
	Port    uint16      // H_PORT
	Skip    bool        // there is to be no channel to it
}

// String gives address:port.
func (h DanceHost) String() string {
	a := netip.AddrFrom16(h.Address)
	if v4, ok := h.Address.IPv4(); ok {
		a = netip.AddrFrom4(v4)
	}
	return netip.AddrPortFrom(a, h.Port).String()
}

// DanceConfig says who dances.
type DanceConfig struct {
	Self     wire.HostRank
	Hosts    []DanceHost // by host rank, self included
	Deadline time.Time   // zero: none

	// CheckSource refuses a greeting that comes from another address than the
	// host's own. Hosts with several addresses need it off.
	CheckSource bool
}

// Dial is a connection that this host has to make: connect, send Greeting, tell
// Dialed.
type Dial struct {
	Host     wire.HostRank
	Address  DanceHost
	Greeting [GreetingSize]byte
}

// StepKind says what a Step is about.
type StepKind uint8

// The steps of a dance.
const (
	Joined   StepKind = iota + 1 // Conn is the channel to Host from now on
	Refuse                       // close Conn; Err says why. The dance goes on
	Complete                     // all channels are there
	TimedOut                     // they are not; Err names the missing hosts
)

var stepNames = [...]string{"none", "joined", "refuse", "complete", "timed out"}

// String names the kind.
func (k StepKind) String() string {
	if int(k) < len(stepNames) {
		return stepNames[k]
	}
	return fmt.Sprintf("step %d", uint8(k))
}

// Step is something that the dance's driver must know or do.
type Step struct {
	Kind StepKind
	Conn int
	Host wire.HostRank
	Err  error
}

// Dance sets up the channels of one host to all others. It is for one goroutine.
//
// IMPI ch.2, Host-to-host connections: every host connects to those of lower rank
// and accepts from those of higher rank, whichever comes first; who connects says
// its host rank in four bytes, and nothing comes back.
type Dance struct {
	c       DanceConfig
	joined  []bool
	failed  []error // last failure to connect
	missing int
	over    bool
	conns   []*greeting // accepted, not greeted yet, oldest first
	steps   []Step
}

// greeting is what came on an accepted connection so far.
type greeting struct {
	conn int
	from wire.HostID
	b    [GreetingSize]byte
	n    int
}

// NewDance begins a dance. It is complete at once if no channel is needed.
func NewDance(c DanceConfig) (*Dance, error) {
	if c.Self < 0 || int(c.Self) >= len(c.Hosts) {
		return nil, fmt.Errorf("%w: own host rank %d of %d hosts", ErrConfig, c.Self, len(c.Hosts))
	}
	d := &Dance{c: c, joined: make([]bool, len(c.Hosts)), failed: make([]error, len(c.Hosts))}
	for h, host := range c.Hosts {
		d.joined[h] = host.Skip || wire.HostRank(h) == c.Self
		if !d.joined[h] {
			d.missing++
		}
	}
	d.complete()
	return d, nil
}

// Dials lists the connections to make, by ascending host rank, without those
// that are there already.
func (d *Dance) Dials() []Dial {
	var all []Dial
	for h := range d.c.Self {
		if d.joined[h] {
			continue
		}
		x := Dial{Host: h, Address: d.c.Hosts[h]}
		binary.BigEndian.PutUint32(x.Greeting[:], uint32(d.c.Self))
		all = append(all, x)
	}
	return all
}

// Dialed says that conn leads to host h and that the greeting has been sent.
func (d *Dance) Dialed(conn int, h wire.HostRank) {
	if h < 0 || h >= d.c.Self || d.joined[h] || d.over {
		d.refuse(conn, h, "host %d was not to be dialled, or is there already", h)
		return
	}
	d.join(conn, h)
}

// DialFailed notes why host h was not reached, for the message that ends the
// dance. The driver may dial again.
func (d *Dance) DialFailed(h wire.HostRank, err error) {
	if h >= 0 && int(h) < len(d.failed) {
		d.failed[h] = err
	}
}

// Accepted says that somebody connected, from that address if it is not zero.
// A new connection drives out the oldest silent one when there are many more
// than hosts to come.
func (d *Dance) Accepted(conn int, from wire.HostID) {
	if !d.awaits() {
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

func (d *Dance) join(conn int, h wire.HostRank) {
	d.joined[h] = true
	d.missing--
	d.steps = append(d.steps, Step{Kind: Joined, Conn: conn, Host: h})
	d.complete()
}

func (d *Dance) refuse(conn int, h wire.HostRank, why string, args ...any) {
	d.steps = append(d.steps, Step{Kind: Refuse, Conn: conn, Host: h,
		Err: fmt.Errorf("%w: %s", ErrGreeting, fmt.Sprintf(why, args...))})
}

// complete ends the dance when nobody is missing.
func (d *Dance) complete() {
	if d.missing > 0 || d.over {
		return
	}
	d.over = true
	d.steps = append(d.steps, Step{Kind: Complete})
	d.dismiss("every host is there")
}

// dismiss refuses all who have not greeted.
func (d *Dance) dismiss(why string) {
	for _, g := range d.conns {
		d.refuse(g.conn, d.c.Self, "%s", why)
	}
	d.conns = nil
}

// Deadline is when to call Tick at the latest; zero means never.
func (d *Dance) Deadline() time.Time {
	if d.over {
		return time.Time{}
	}
	return d.c.Deadline
}

// Tick tells the time. At the deadline a dance that is not complete ends.
func (d *Dance) Tick(now time.Time) {
	if d.over || d.c.Deadline.IsZero() || now.Before(d.c.Deadline) {
		return
	}
	d.over = true
	d.steps = append(d.steps, Step{Kind: TimedOut, Err: d.missingError()})
	d.dismiss("the time for the dance is over")
}

// Missing lists the hosts to which there is no channel yet.
func (d *Dance) Missing() []wire.HostRank {
	var all []wire.HostRank
	for h, ok := range d.joined {
		if !ok {
			all = append(all, wire.HostRank(h))
		}
	}
	return all
}

func (d *Dance) missingError() error {
	var list []string
	for _, h := range d.Missing() {
		s := fmt.Sprintf("host %d at %v has not connected to us", h, d.c.Hosts[h])
		if h < d.c.Self {
			s = fmt.Sprintf("host %d at %v was not reached", h, d.c.Hosts[h])
		}
		if d.failed[h] != nil {
			s += ": " + d.failed[h].Error()
		}
		list = append(list, s)
	}
	return fmt.Errorf("%w: %s", ErrMissing, strings.Join(list, "; "))
}

// Next gives the oldest step that was not given yet.
func (d *Dance) Next() (Step, bool) {
	if len(d.steps) == 0 {
		return Step{}, false
	}
	s := d.steps[0]
	d.steps = d.steps[1:]
	return s, true
}
