package node

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/node/dial"
	"github.com/openimpi/impi/internal/node/routes"
	"github.com/openimpi/impi/internal/poll"
)

// A probe finds out how fast the nodes of two procs can talk by a transport: it
// dials where a link of the procs would be dialled, greets as they would, and
// then both ends wait as procs do. After the greeting the dialler sends records
// of eight bytes, what and size, each of which comes back: pings at once, and a
// load after the size bytes that follow it. It ends by the end of the link.
const (
	probePing = 0x70696e67 // "ping"
	probeLoad = 0x6c6f6164 // "load"

	probeRecord  = 8
	probeRounds  = 1000 // at most
	probeWarm    = 20   // rounds that are not counted
	probeTime    = 60 * time.Millisecond
	probePiece   = 64 << 10
	probeFirst   = 256 << 10 // bytes of the first load; each is twice the one before
	probeMost    = 32 << 20  // bytes of one load
	probeLoads   = 3         // that took long enough
	probeAnswers = 2         // probes that a node answers at a time
	probeLooks   = 8         // looks into memory before a wait is counted, as in internal/engine
)

// errProbe is the error of a probe whose other side does not keep to the above.
var errProbe = errors.New("malformed probe")

// probeServer bounds how many probes are answered at a time.
type probeServer struct{ busy atomic.Int32 }

func (d *probeServer) enter() bool {
	if d.busy.Add(1) <= probeAnswers {
		return true
	}
	d.busy.Add(-1)
	return false
}

func (d *probeServer) leave() { d.busy.Add(-1) }

// probe measures the way to a peer by a transport. The context bounds it.
func (d *directLinks) probe(ctx context.Context, x pair, transport string) (*links.Measure, error) {
	i := slices.IndexFunc(d.n.ways(x), func(w routes.Way) bool { return w.T.Name == transport })
	if i < 0 {
		return nil, fmt.Errorf("this site's routes do not allow %s to rank %d", transport, x.peer)
	}
	w := d.n.ways(x)[i]
	l, err := d.dialFor(ctx, &dynamic.Hello{Src: x.local, Dst: x.peer, Probe: true}, w)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	c, err := d.n.newPatter(ctx, l)
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

// answerProbe is the other side. It ends with ctx at the latest.
func (d *directLinks) answerProbe(ctx context.Context, l link.Link, g *dynamic.Acceptor, h dynamic.Hello, t *routes.Transport) error {
	verdict := dynamic.Accepted
	switch p := d.n.procs.Of(h.Dst); {
	case p == nil || int(h.Src) >= len(d.n.job.Procs):
		verdict = dynamic.UnknownRank
	case !d.n.routes.Allows(h.Src, t), !d.n.routes.AllowsPlane(h.Src, l):
		verdict = dynamic.NotAllowed
	case !d.service.enter():
		verdict = dynamic.Busy
	default:
		defer d.service.leave()
	}
	if err := dial.Answer(ctx, l, g, verdict); err != nil {
		return err
	}
	defer l.Close()
	c, err := d.n.newPatter(ctx, l)
	if err != nil {
		return err
	}
	return c.answer()
}

// patter is a link whose waits begin by polling, as those of procs do.
type patter struct {
	*dial.Blocking
	l     link.Link
	spin  poll.Spinner
	looks int
	buf   []byte
}

func (n *node) newPatter(ctx context.Context, l link.Link) (*patter, error) {
	spin, err := newSpinner(n.opt.Site.Wait)
	if err != nil {
		return nil, err
	}
	t, err := dial.NewBlocking(ctx, l)
	if err != nil {
		return nil, err
	}
	c := &patter{Blocking: t, l: l, spin: spin, looks: 1, buf: make([]byte, probePiece)}
	if l.Limits().Memory {
		c.looks = probeLooks
	}
	return c, nil
}

// get fills b.
func (c *patter) get(b []byte) error {
	c.spin.Begin()
	for i := 0; len(b) > 0; i++ {
		n, err := c.look(b)
		switch {
		case err != nil:
			return err
		case n > 0:
			b, i = b[n:], -1
		case c.spin.Over(i):
			return c.ReadFull(b)
		}
	}
	return nil
}

// look receives what is there, and looks a few times where that costs nothing.
func (c *patter) look(b []byte) (n int, err error) {
	for range c.looks {
		if n, err = c.l.Recv([][]byte{b}); n > 0 || err != nil {
			break
		}
		poll.Pause()
	}
	return n, err
}

// put sends b.
func (c *patter) put(b []byte) error {
	c.spin.Begin()
	for i := 0; len(b) > 0; i++ {
		n, err := c.l.Send([][]byte{b})
		switch {
		case err != nil:
			return err
		case n > 0:
			b, i = b[n:], -1
		case c.spin.Over(i):
			return c.WriteAll(b)
		}
	}
	return nil
}

// ask sends a record.
func (c *patter) ask(what, size uint32) error {
	var b [probeRecord]byte
	binary.BigEndian.PutUint32(b[:], what)
	binary.BigEndian.PutUint32(b[4:], size)
	return c.put(b[:])
}

// hear receives a record.
func (c *patter) hear() (what, size uint32, err error) {
	var b [probeRecord]byte
	if err := c.get(b[:]); err != nil {
		return 0, 0, err
	}
	return binary.BigEndian.Uint32(b[:]), binary.BigEndian.Uint32(b[4:]), nil
}

// round sends a record, and a load behind it, and waits for its return.
func (c *patter) round(what, size uint32) (time.Duration, error) {
	start := time.Now()
	if err := c.ask(what, size); err != nil {
		return 0, err
	}
	for left := int(size); what == probeLoad && left > 0; left -= min(left, len(c.buf)) {
		if err := c.put(c.buf[:min(left, len(c.buf))]); err != nil {
			return 0, err
		}
	}
	w, s, err := c.hear()
	if err == nil && (w != what || s != size) {
		err = fmt.Errorf("%w: %08x %d came back for %08x %d", errProbe, w, s, what, size)
	}
	return time.Since(start), err
}

// pingPong measures the half round trip.
func (c *patter) pingPong(m *links.Measure) error {
	var trips []time.Duration
	began := time.Now()
	for i := range probeWarm + probeRounds {
		d, err := c.round(probePing, uint32(i))
		if err != nil {
			return err
		}
		if i >= probeWarm || time.Since(began) > probeTime {
			trips = append(trips, d/2)
		}
		if time.Since(began) > probeTime {
			break
		}
	}
	slices.Sort(trips)
	m.Rounds, m.HalfTrip, m.Best = len(trips), trips[len(trips)/2], trips[0]
	return nil
}

// stream measures the rate: the best of some loads that take long enough to tell,
// as others may want the cores meanwhile.
func (c *patter) stream(m *links.Measure) error {
	began, long := time.Now(), 0
	for size := uint32(probeFirst); long < probeLoads && time.Since(began) < 3*probeTime; {
		d, err := c.round(probeLoad, size)
		if err != nil {
			return err
		}
		m.Rate = max(m.Rate, float64(size)/d.Seconds())
		switch {
		case d > probeTime/8 || size == probeMost:
			long++
		default:
			size *= 2
		}
	}
	return nil
}

// answer sends back what comes.
func (c *patter) answer() error {
	for {
		what, size, err := c.hear()
		switch {
		case err != nil:
			return nil // the other side has seen enough
		case what == probeLoad && size <= probeMost:
			for left := int(size); left > 0; left -= min(left, len(c.buf)) {
				if err := c.get(c.buf[:min(left, len(c.buf))]); err != nil {
					return err
				}
			}
		case what != probePing:
			return fmt.Errorf("%w: %08x %d", errProbe, what, size)
		}
		if err := c.ask(what, size); err != nil {
			return err
		}
	}
}

// probeOf answers a request for a probe.
func (n *node) probeOf(ctx context.Context, r links.Request) (*links.Measure, error) {
	x := pair{wire.WorldRank(r.Local), wire.WorldRank(r.Peer)}
	if n.procs.Of(x.local) == nil || r.Peer < 0 || r.Peer >= len(n.job.Procs) || r.Local == r.Peer {
		return nil, fmt.Errorf("%w: ranks %d and %d are no pair of this site", links.ErrRequest, r.Local, r.Peer)
	}
	m, err := n.direct.probe(ctx, x, r.Transport)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("the node of rank %d did not answer in time", r.Peer)
	}
	return m, err
}
