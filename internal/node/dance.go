package node

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/transports"
)

const (
	firstRetry = 50 * time.Millisecond // before a second try to connect; it doubles
	lastRetry  = 2 * time.Second
)

// dancer connects one host with all others: it carries out what agent.Dance
// decides. One goroutine owns the dance; others dial, accept and read, and send
// it what came of that.
type dancer struct {
	n        *node
	h        *ownHost
	dance    *agent.Dance
	conns    []link.Link // by the dance's number; nil once closed or handed on
	found    map[wire.HostRank]link.Link
	happens  chan func()
	hopeless error // no dial of some host can ever succeed
	ctx      context.Context
	wg       sync.WaitGroup
}

// connect makes the channels from h to all other hosts of the job.
func (n *node) connect(ctx context.Context, h *ownHost) (map[wire.HostRank]link.Link, error) {
	if err := n.checkChannels(h); err != nil {
		return nil, err
	}
	hosts := make([]agent.DanceHost, len(n.job.Hosts))
	for i, x := range n.job.Hosts {
		hosts[i] = agent.DanceHost{Address: x.Address, Port: uint16(x.Port)}
	}
	dance, err := agent.NewDance(agent.DanceConfig{
		Self: h.rank, Hosts: hosts, Deadline: n.deadline, CheckSource: n.job.AllOwn,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	d := &dancer{n: n, h: h, dance: dance, ctx: ctx, found: make(map[wire.HostRank]link.Link), happens: make(chan func())}
	stop := n.report(d.waitingFor)
	h.dancing.Store(d)
	err = d.run()
	h.dancing.Store(nil)
	cancel() // before stop: the report may be asking the dance
	stop()
	d.wg.Wait()
	for _, l := range d.conns {
		if l != nil {
			_ = l.Close()
		}
	}
	if err != nil {
		for _, l := range d.found {
			_ = l.Close()
		}
	}
	return d.found, err
}

func (d *dancer) run() error {
	d.wg.Go(d.accept)
	for _, x := range d.dance.Dials() {
		d.wg.Go(func() { d.dial(x) })
	}
	timer := time.NewTimer(time.Until(d.n.deadline))
	defer timer.Stop()
	for {
		if over, err := d.steps(); over {
			return err
		}
		select {
		case f := <-d.happens:
			f()
			if d.hopeless != nil {
				return d.hopeless
			}
		case now := <-timer.C:
			d.dance.Tick(now)
		case <-d.ctx.Done():
			return context.Cause(d.ctx)
		}
	}
}

// steps does what the dance says.
func (d *dancer) steps() (over bool, err error) {
	for {
		s, ok := d.dance.Next()
		if !ok {
			return false, nil
		}
		switch s.Kind {
		case agent.Joined:
			d.found[s.Host], d.conns[s.Conn] = d.conns[s.Conn], nil
			d.n.log.Debug("channel", "from", d.h.rank, "to", s.Host, "transport", transportOf(d.found[s.Host]), "data_plane", planeOf(d.found[s.Host]))
		case agent.Refuse:
			d.n.log.Warn("refused a connection at the channel port", "host", d.h.config.Address, "reason", s.Err)
			if l := d.conns[s.Conn]; l != nil {
				_ = l.Close()
				d.conns[s.Conn] = nil
			}
		case agent.Complete:
			return true, nil
		case agent.TimedOut:
			return true, timedOut("site %s: %v; missing: %s", d.n.opt.Site.Name, s.Err, d.missing())
		}
	}
}

// tell has the dance's goroutine run f. False: the dance is over.
func (d *dancer) tell(f func()) bool {
	select {
	case d.happens <- f:
		return true
	case <-d.ctx.Done():
		return false
	}
}

// dial connects to a host of lower rank, again and again until it succeeds.
func (d *dancer) dial(x agent.Dial) {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		l, err := d.reach(x)
		if err == nil {
			if !d.tell(func() { d.dance.Dialed(d.add(l), x.Host) }) {
				_ = l.Close()
			}
			return
		}
		if !d.tell(func() { d.failed(x.Host, err) }) {
			return
		}
		d.n.log.Debug("cannot connect yet", "host", x.Host, "error", err)
		select {
		case <-time.After(wait):
		case <-d.ctx.Done():
			return
		}
	}
}

// reach connects to a host once: by the transports of the route where the channel
// is better made by one of them, else as IMPI has it.
func (d *dancer) reach(x agent.Dial) (link.Link, error) {
	ways, must := d.n.channelWays(d.h, x.Host)
	var errs []error
	for _, w := range ways {
		l, err := d.n.direct.dialHost(d.ctx, d.h, x.Host, w)
		if err == nil {
			return l, nil
		}
		errs = append(errs, fmt.Errorf("%s at %s: %w", w.t.name, w.address, err))
	}
	if must {
		_, says := d.n.forbidsPlain(d.n.job.Hosts[x.Host].Client)
		return nil, fmt.Errorf("%s, and it cannot be reached so: %w", says, errors.Join(errs...))
	}
	return d.try(transports.DialSpec{
		Address: netip.AddrPortFrom(x.Address.Address.Addr(), x.Address.Port).String(),
		From:    d.h.config.Address.String(),
	}, x.Greeting[:])
}

// failed notes why a dial failed. Addresses that cannot be used at all do not
// become better by waiting.
func (d *dancer) failed(h wire.HostRank, err error) {
	d.dance.DialFailed(h, err)
	var t *transports.Error
	if errors.As(err, &t) && (t.Code == transports.CodeAddress || t.Code == transports.CodeUnsupported || t.Code == transports.CodeAuth) {
		d.hopeless = fmt.Errorf("no channel to %s is possible: %w", d.n.hostName(h), err)
	}
}

func (d *dancer) try(to transports.DialSpec, greeting []byte) (link.Link, error) {
	ctx, cancel := context.WithTimeout(d.ctx, dialLimit)
	defer cancel()
	l, err := d.n.channels.Dial(ctx, to)
	if err != nil {
		return nil, err
	}
	t, err := newTalk(ctx, l)
	if err == nil {
		err = t.write(greeting)
		t.close()
	}
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// add gives a link its number.
func (d *dancer) add(l link.Link) int {
	d.conns = append(d.conns, l)
	return len(d.conns) - 1
}

// accept takes whoever connects until the dance is over.
func (d *dancer) accept() {
	for {
		l, err := d.h.channel.Accept(d.ctx)
		if err != nil {
			if d.ctx.Err() == nil {
				d.tell(func() { d.n.log.Error("no channel can arrive any more", "host", d.h.config.Address, "error", err) })
			}
			return
		}
		if !d.tell(func() { d.greet(l) }) {
			_ = l.Close()
			return
		}
	}
}

// greet reads a greeting, and not a byte of the packets behind it.
func (d *dancer) greet(l link.Link) {
	conn := d.add(l)
	d.dance.Accepted(conn, source(l))
	d.wg.Go(func() {
		var b [agent.GreetingSize]byte
		t, err := newTalk(d.ctx, l)
		if err == nil {
			err = t.read(b[:])
			t.close()
		}
		d.tell(func() {
			if err == nil {
				err = d.plain(b)
			}
			if err != nil {
				d.dance.Closed(conn, err)
			} else {
				d.dance.Input(conn, b[:])
			}
		})
	})
}

// plain judges a host that came as IMPI has it and says its rank: anybody can.
func (d *dancer) plain(greeting [agent.GreetingSize]byte) error {
	h := binary.BigEndian.Uint32(greeting[:])
	if uint64(h) >= uint64(len(d.n.job.Hosts)) {
		return nil // the dance knows better words
	}
	if must, says := d.n.forbidsPlain(d.n.job.Hosts[h].Client); must {
		return fmt.Errorf("it says it is host %d, and %s: %w", h, says, errPlain)
	}
	return nil
}

// join takes a link from a host that has greeted as direct links do. False: the
// dance is over.
func (d *dancer) join(l link.Link, from wire.HostRank) bool {
	return d.tell(func() {
		conn := d.add(l)
		d.dance.Accepted(conn, wire.HostID{})
		d.dance.Input(conn, binary.BigEndian.AppendUint32(nil, uint32(from)))
	})
}

// source gives the address that a link comes from, if the link tells.
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

// missing names the sites whose hosts are not connected.
func (d *dancer) missing() string {
	var names []string
	for _, h := range d.dance.Missing() {
		names = append(names, d.n.hostName(h))
	}
	return strings.Join(names, ", ")
}

// waitingFor is asked by another goroutine than the dance's.
func (d *dancer) waitingFor() string {
	answer := make(chan string, 1)
	if !d.tell(func() { answer <- d.missing() }) {
		return ""
	}
	return "the channels of " + <-answer
}

// hostName names a host of the job for messages.
func (n *node) hostName(h wire.HostRank) string {
	x := n.job.Hosts[h]
	return fmt.Sprintf("%s at %v", n.clientName(x.Client), agent.DanceHost{Address: x.Address, Port: uint16(x.Port)})
}

// connectAll lets all hosts of the site dance at the same time.
func (n *node) connectAll(ctx context.Context) ([]map[wire.HostRank]link.Link, error) {
	channels := make([]map[wire.HostRank]link.Link, len(n.hosts))
	errs := make([]error, len(n.hosts))
	var wg sync.WaitGroup
	for i, h := range n.hosts {
		wg.Go(func() { channels[i], errs[i] = n.connect(ctx, h) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		for _, c := range channels {
			for _, l := range c {
				_ = l.Close() // again, where its own dance failed
			}
		}
		return nil, err
	}
	return channels, nil
}
