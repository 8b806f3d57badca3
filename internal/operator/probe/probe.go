// Package probe measures how fast the nodes of two procs can talk by a transport.
package probe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/connmgr/accept"
	"github.com/openimpi/impi/internal/connmgr/dial"
	"github.com/openimpi/impi/internal/connmgr/direct"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/poll"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/site"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/polling"
)

// A probe measures how fast the nodes of two procs can communicate by a transport: it dials where a
// link of the procs would be dialled, greets as they would, and then both ends wait as procs do.
// After the greeting the dialler sends records of eight bytes, what and size, each of which comes
// back: pings at once, and a load after the size bytes that follow it. The end of the link ends the
// probe.
const (
	ping = 0x70696e67 // "ping"
	load = 0x6c6f6164 // "load"

	recordSize = 8
	mostRounds = 1000
	warmRounds = 20 // rounds that are not counted
	roundTime  = 60 * time.Millisecond
	pieceSize  = 64 << 10
	firstLoad  = 256 << 10 // bytes of the first load; each is twice the one before
	mostLoad   = 32 << 20  // bytes of one load
	loads      = 3         // number of loads that took long enough
	answers    = 2         // probes that a node answers at a time
	looks      = 8         // looks into memory before a wait is counted, as in internal/engine
)

var errMalformed = errors.New("malformed probe")

// Prober measures the links of a site's procs, and answers probes of other nodes.
type Prober struct {
	Links *direct.Links
	busy  atomic.Int32 // number of probes that are being answered
}

// Enter reports whether one more probe may be answered. Leave must be called at its end.
func (d *Prober) Enter() bool {
	if d.busy.Add(1) <= answers {
		return true
	}
	d.busy.Add(-1)
	return false
}

// Leave makes room for another probe.
func (d *Prober) Leave() { d.busy.Add(-1) }

func (d *Prober) probe(ctx context.Context, x direct.Pair, transport string) (*links.Measure, error) {
	i := slices.IndexFunc(d.Links.Candidates(x), func(w routes.Candidate) bool { return w.Transport.Name == transport })
	if i < 0 {
		return nil, fmt.Errorf("this site's routes do not allow %s to rank %d", transport, x.Peer)
	}
	w := d.Links.Candidates(x)[i]
	l, err := d.Links.Dial(ctx, &dynamic.Hello{Src: x.Local, Dst: x.Peer, Probe: true}, w)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	c, err := d.newPollingLink(ctx, l)
	if err != nil {
		return nil, err
	}
	m := &links.Measure{Plane: dial.OriginOf(l).Plane}
	if err := c.pingPong(m); err != nil {
		return nil, fmt.Errorf("half round trip: %w", err)
	}
	if err := c.stream(m); err != nil {
		return nil, fmt.Errorf("rate: %w", err)
	}
	return m, nil
}

// Answer is the accepting side of a probe. It ends with ctx at the latest.
func (d *Prober) Answer(ctx context.Context, a *accept.Arrival) error {
	l, h, t := a.Link, a.Hello, a.At.Transport
	verdict := dynamic.Accepted
	switch p := d.Links.Procs.OfRank(h.Dst); {
	case p == nil || int(h.Src) >= d.Links.Routes.World.Procs.Len():
		verdict = dynamic.UnknownRank
	case !d.Links.Routes.Allows(h.Src, t), !d.Links.Routes.AllowsPlane(h.Src, l):
		verdict = dynamic.NotAllowed
	case !d.Enter():
		verdict = dynamic.Busy
	default:
		defer d.Leave()
	}
	if err := a.Answer(ctx, verdict); err != nil {
		return err
	}
	defer l.Close()
	c, err := d.newPollingLink(ctx, l)
	if err != nil {
		return err
	}
	return c.answer()
}

// pollingLink is a link whose waits begin by polling, as those of procs do.
type pollingLink struct {
	*dial.Blocking
	l     link.Link
	spin  polling.Spinner
	looks int
	buf   []byte
}

func (d *Prober) newPollingLink(ctx context.Context, l link.Link) (*pollingLink, error) {
	spin, err := polling.NewSpinner(site.EncodeWait(d.Links.Routes.Site.Wait))
	if err != nil {
		return nil, err
	}
	t, err := dial.NewBlocking(ctx, l)
	if err != nil {
		return nil, err
	}
	c := &pollingLink{Blocking: t, l: l, spin: spin, looks: 1, buf: make([]byte, pieceSize)}
	if l.Limits().Memory {
		c.looks = looks
	}
	return c, nil
}

func (c *pollingLink) get(b []byte) error { return c.move(b, c.look, c.ReadFull) }

func (c *pollingLink) put(b []byte) error {
	return c.move(b, func(b []byte) (int, error) { return c.l.Send([][]byte{b}) }, c.WriteAll)
}

// move calls try until all of b is moved. When polling has gone on for long enough it blocks for
// the rest.
func (c *pollingLink) move(b []byte, try func([]byte) (int, error), block func([]byte) error) error {
	c.spin.Begin()
	for i := 0; len(b) > 0; i++ {
		n, err := try(b)
		switch {
		case err != nil:
			return err
		case n > 0:
			b, i = b[n:], -1
		case c.spin.Over(i):
			return block(b)
		}
	}
	return nil
}

// look receives what is there, and polls a few times where that costs nothing.
func (c *pollingLink) look(b []byte) (n int, err error) {
	for range c.looks {
		if n, err = c.l.Recv([][]byte{b}); n > 0 || err != nil {
			break
		}
		poll.Pause()
	}
	return n, err
}

func (c *pollingLink) ask(what, size uint32) error {
	var b [recordSize]byte
	binary.BigEndian.PutUint32(b[:], what)
	binary.BigEndian.PutUint32(b[4:], size)
	return c.put(b[:])
}

func (c *pollingLink) hear() (what, size uint32, err error) {
	var b [recordSize]byte
	if err := c.get(b[:]); err != nil {
		return 0, 0, err
	}
	return binary.BigEndian.Uint32(b[:]), binary.BigEndian.Uint32(b[4:]), nil
}

// round sends a record, and a load behind it, and waits for its return.
func (c *pollingLink) round(what, size uint32) (time.Duration, error) {
	start := time.Now()
	if err := c.ask(what, size); err != nil {
		return 0, err
	}
	for left := int(size); what == load && left > 0; left -= min(left, len(c.buf)) {
		if err := c.put(c.buf[:min(left, len(c.buf))]); err != nil {
			return 0, err
		}
	}
	w, s, err := c.hear()
	if err == nil && (w != what || s != size) {
		err = fmt.Errorf("%w: %08x %d came back for %08x %d", errMalformed, w, s, what, size)
	}
	return time.Since(start), err
}

// pingPong measures the half round trip.
func (c *pollingLink) pingPong(m *links.Measure) error {
	var trips []time.Duration
	began := time.Now()
	for i := range warmRounds + mostRounds {
		d, err := c.round(ping, uint32(i))
		if err != nil {
			return err
		}
		if i >= warmRounds || time.Since(began) > roundTime {
			trips = append(trips, d/2)
		}
		if time.Since(began) > roundTime {
			break
		}
	}
	slices.Sort(trips)
	m.Rounds, m.HalfTrip, m.Best = len(trips), trips[len(trips)/2], trips[0]
	return nil
}

// stream measures the rate: the best of some loads that take long enough to tell,
// as others may want the cores meanwhile.
func (c *pollingLink) stream(m *links.Measure) error {
	began, long := time.Now(), 0
	for size := uint32(firstLoad); long < loads && time.Since(began) < 3*roundTime; {
		d, err := c.round(load, size)
		if err != nil {
			return err
		}
		m.Rate = max(m.Rate, float64(size)/d.Seconds())
		switch {
		case d > roundTime/8 || size == mostLoad:
			long++
		default:
			size *= 2
		}
	}
	return nil
}

func (c *pollingLink) answer() error {
	for {
		what, size, err := c.hear()
		switch {
		case err != nil:
			return nil // the other side has seen enough
		case what == load && size <= mostLoad:
			for left := int(size); left > 0; left -= min(left, len(c.buf)) {
				if err := c.get(c.buf[:min(left, len(c.buf))]); err != nil {
					return err
				}
			}
		case what != ping:
			return fmt.Errorf("%w: %08x %d", errMalformed, what, size)
		}
		if err := c.ask(what, size); err != nil {
			return err
		}
	}
}

// Measure measures how fast two procs, r.Local of this node and r.Peer, can talk by r.Transport.
// The error is links.ErrRequest if they are no such pair.
func (d *Prober) Measure(ctx context.Context, r links.Request) (*links.Measure, error) {
	x := direct.Pair{Local: wire.WorldRank(r.Local), Peer: wire.WorldRank(r.Peer)}
	if d.Links.Procs.OfRank(x.Local) == nil || r.Peer < 0 || r.Peer >= d.Links.Routes.World.Procs.Len() || r.Local == r.Peer {
		return nil, fmt.Errorf("%w: ranks %d and %d are no pair of this site", links.ErrRequest, r.Local, r.Peer)
	}
	m, err := d.probe(ctx, x, r.Transport)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("the node of rank %d did not answer in time", r.Peer)
	}
	return m, err
}
