package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/openimpi/impi/core/wire"
)

// ErrMissing is wrapped by the error of a dance that reached its deadline.
var ErrMissing = errors.New("agent: hosts did not connect in time")

// DanceHost describes a host to the dance.
type DanceHost struct {
	Address wire.HostID // H_IPV6
	Port    uint16      // H_PORT
	Skip    bool        // no channel to the host is needed

	// Proves is true if the host is one of ours and shares a secret with us. The channel to it is
	// used only after both ends have proven that they have the secret.
	Proves bool
	From   []netip.Prefix // further addresses from which the host may connect

	// By is the time until which a host that listens already, such as one of our own site, must
	// have answered: the dance ends if it has not. If By is zero, the dance's deadline applies.
	By time.Time
}

// String returns address:port.
func (h DanceHost) String() string { return netip.AddrPortFrom(h.Address.Addr(), h.Port).String() }

// DanceConfig describes the job's hosts to a dance (IMPI ch.2, Host labels).
type DanceConfig struct {
	Self     wire.HostRank
	Hosts    []DanceHost // by host rank, self included
	Deadline time.Time   // zero: none
}

// Dial is a connection that this host has to make: the driver connects, sends Greeting and
// calls Dialed. To a host that Proves, it runs a dynamic.Dialler instead of sending
// Greeting, and calls Dialed when the host has proven itself.
type Dial struct {
	Host     wire.HostRank
	Address  DanceHost
	Greeting [GreetingSize]byte
}

// Dance sets up the channels of one host to all others. Only one goroutine may use it at a
// time.
//
// IMPI ch.2, Host-to-host connections: a host connects to all hosts of lower rank and
// accepts from those of higher rank, in any order. The one that connects sends its host
// rank in four bytes and gets no answer. Anybody can send that, so hosts of ours greet each
// other with a proof; of a foreign host only the address can be checked.
type Dance struct {
	c       DanceConfig
	joined  []bool
	failed  []error // by host: last failure to connect
	silent  []bool  // by host: the last failure was that nothing answered
	missing int
	over    bool
	conns   []*greeting // accepted connections that have not greeted or not proven themselves yet, oldest first
	steps   []Step
}

// NewDance begins a dance. It is complete at once if no channel is needed.
func NewDance(c DanceConfig) (*Dance, error) {
	if c.Self < 0 || int(c.Self) >= len(c.Hosts) {
		return nil, fmt.Errorf("%w: own host rank %d of %d hosts", ErrConfig, c.Self, len(c.Hosts))
	}
	d := &Dance{c: c, joined: make([]bool, len(c.Hosts)), failed: make([]error, len(c.Hosts)), silent: make([]bool, len(c.Hosts))}
	for h, host := range c.Hosts {
		d.joined[h] = host.Skip || wire.HostRank(h) == c.Self
		if !d.joined[h] {
			d.missing++
		}
	}
	d.complete()
	return d, nil
}

// Dials lists the connections to make, by ascending host rank, without those that exist
// already.
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

// Dialed records that conn leads to host h and that the greeting has been sent.
func (d *Dance) Dialed(conn int, h wire.HostRank) {
	if h < 0 || h >= d.c.Self || d.joined[h] || d.over {
		d.refuse(conn, h, "host %d is not one to dial, or has connected already", h)
		return
	}
	d.join(conn, h)
}

// DialFailed records why host h was not reached, for the error of a dance that reaches its
// deadline. The driver may dial again.
func (d *Dance) DialFailed(h wire.HostRank, err error) {
	if h >= 0 && int(h) < len(d.failed) {
		d.failed[h], d.silent[h] = err, false
	}
}

// NoAnswer is like DialFailed for a connection that was not made at all: there is no route to the
// host, a firewall blocks it, or no process listens.
func (d *Dance) NoAnswer(h wire.HostRank, err error) {
	d.DialFailed(h, err)
	if h >= 0 && int(h) < len(d.silent) {
		d.silent[h] = true
	}
}

// Connected records that a connection to host h was made and is being greeted, whatever has come of
// earlier ones: the host answers, though it may be slow.
func (d *Dance) Connected(h wire.HostRank) {
	if h >= 0 && int(h) < len(d.silent) {
		d.silent[h] = false
	}
}

// Unreachable records that host h can never be reached. The dance ends with the step Unreachable.
func (d *Dance) Unreachable(h wire.HostRank, err error) {
	if d.over || h < 0 || int(h) >= len(d.joined) || d.joined[h] {
		return
	}
	d.over = true
	d.steps = append(d.steps, Step{Kind: Unreachable, Host: h, Err: err})
	d.dismiss("the dance is over")
}

func (d *Dance) join(conn int, h wire.HostRank) {
	d.joined[h] = true
	d.missing--
	d.steps = append(d.steps, Step{Kind: Joined, Conn: conn, Host: h})
	d.complete()
}

func (d *Dance) complete() {
	if d.missing > 0 || d.over {
		return
	}
	d.over = true
	d.steps = append(d.steps, Step{Kind: Complete})
	d.dismiss("every host is there")
}

// dismiss refuses all connections that have not greeted, as the dance is over.
func (d *Dance) dismiss(why string) {
	for _, g := range d.conns {
		d.refuse(g.conn, d.c.Self, "%s", why)
	}
	d.conns = nil
}

// Tick sets the current time. A dance that is not complete at its deadline ends with the step
// TimedOut, and one that has to reach a host By a time, and cannot, with Unreachable.
func (d *Dance) Tick(now time.Time) {
	if d.over {
		return
	}
	for h, host := range d.c.Hosts[:d.c.Self] {
		if !d.joined[h] && d.silent[h] && !host.By.IsZero() && !now.Before(host.By) {
			d.Unreachable(wire.HostRank(h), fmt.Errorf("host %d at %v was not reached: %w", h, host, d.failed[h]))
			return
		}
	}
	if d.c.Deadline.IsZero() || now.Before(d.c.Deadline) {
		return
	}
	d.over = true
	d.steps = append(d.steps, Step{Kind: TimedOut, Err: d.missingError()})
	d.dismiss("the time for the dance is over")
}

// Done reports whether the dance has ended, complete or not.
func (d *Dance) Done() bool { return d.over }

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
