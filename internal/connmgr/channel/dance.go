package channel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/connmgr/dial"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/site/report"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// dancer connects one host with all others: it carries out what agent.Dance
// decides. One goroutine owns the dance; others dial, accept and read, and send
// it what came of that.
type dancer struct {
	c        *Channels
	h        *end
	dance    *agent.Dance
	conns    map[int]*danceConn // by their numbers in the dance, without those joined or refused
	numbered int                // how many numbers were assigned
	found    map[wire.HostRank]link.Link
	happens  chan func()
	ctx      context.Context
	wg       sync.WaitGroup
}

type danceConn struct {
	l       link.Link // nil once closed or handed on
	first   [agent.GreetingSize]byte
	cancel  context.CancelFunc // ends the reading goroutine; nil: none
	dropped bool               // to be closed when it is not being read any more
}

func (c *Channels) connect(ctx context.Context, h *end) (map[wire.HostRank]link.Link, error) {
	if err := c.Routes.CheckChannels(h.Rank, h.Config.Address.String()); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d := &dancer{c: c, h: h, ctx: ctx, found: make(map[wire.HostRank]link.Link), conns: make(map[int]*danceConn), happens: make(chan func())}
	stop := report.LogWait(c.Log, c.Deadline, d.waitingFor)
	err := d.run()
	cancel() // before stop: the report may be using the dance
	stop()
	d.wg.Wait()
	for _, c := range d.conns {
		c.close()
	}
	if err != nil {
		for _, l := range d.found {
			_ = l.Close()
		}
	}
	return d.found, err
}

func (d *dancer) run() (err error) {
	d.c.change(func(m *agent.Channels) {
		d.dance, err = m.Begin(d.h.Rank, time.Now(), d.c.Deadline)
		d.h.dancing.Store(d)
	})
	if err != nil {
		return err
	}
	defer d.c.change(func(m *agent.Channels) { m.End(d.h.Rank) })
	d.wg.Go(d.accept)
	for _, x := range d.dance.Dials() {
		d.wg.Go(func() { d.dial(x) })
	}
	timer := time.NewTimer(time.Until(d.c.Deadline))
	defer timer.Stop()
	reach := time.NewTicker(agent.ReachLimit / 5)
	defer reach.Stop()
	for {
		if over, err := d.steps(); over {
			return err
		}
		select {
		case f := <-d.happens:
			f()
		case now := <-timer.C:
			d.dance.Tick(now)
		case now := <-reach.C:
			d.dance.Tick(now)
		case <-d.ctx.Done():
			return context.Cause(d.ctx)
		}
	}
}

func (d *dancer) steps() (over bool, err error) {
	for {
		s, ok := d.dance.Next()
		if !ok {
			return false, nil
		}
		switch s.Kind {
		case agent.Joined:
			if old := d.found[s.Host]; old != nil {
				_ = old.Close()
			}
			d.found[s.Host] = d.take(s.Conn).handOn()
			d.c.Log.Debug("channel", "from", d.h.Rank, "to", s.Host, "transport", dial.OriginOf(d.found[s.Host]).Transport, "data_plane", dial.OriginOf(d.found[s.Host]).Plane)
		case agent.Refuse:
			level := hclog.Warn
			if errors.Is(s.Err, agent.ErrEarly) {
				level = hclog.Debug
			}
			d.c.Log.Log(level, "refused a connection at the channel port", "host", d.h.Config.Address, "reason", s.Err)
			d.take(s.Conn).drop()
		case agent.Prove:
			d.prove(s.Conn)
		case agent.Complete:
			return true, nil
		case agent.Unreachable:
			return true, s.Err
		case agent.TimedOut:
			return true, ending.TimedOut("site %s: %v; missing: %s", d.c.Routes.Site.Name, s.Err, d.missing())
		}
	}
}

// tell makes the dance's goroutine run f. It returns false if the dance is over.
func (d *dancer) tell(f func()) bool {
	select {
	case d.happens <- f:
		return true
	case <-d.ctx.Done():
		return false
	}
}

// dial connects to a host of lower rank, again and again until it succeeds: by the transports of
// the route where the channel is better made by one of them, else as IMPI has it.
func (d *dancer) dial(x agent.Dial) {
	to := d.c.Routes.World.Hosts[x.Host].Client
	candidates, must := d.c.Routes.ChannelCandidates(d.h.Rank, d.h.Config.Address.String(), x.Host)
	if !must {
		candidates = append(candidates, d.c.Routes.PlainCandidate(d.h.Config.Address.String(), x.Host))
	}
	r := rounds{d: d, host: x.Host, candidates: candidates, Reach: agent.Reach{
		Must: must, Own: to == d.c.Routes.World.Self, Listens: d.c.Routes.World.Listens(to), Began: time.Now(),
	}}
	s := dial.Dialing{
		DialPlan: dynamic.ChannelPlan(len(candidates)), Candidates: candidates,
		Dial: func(ctx context.Context, w routes.Candidate, step dynamic.DialStep) (link.Link, error) {
			limit := r.StartLimit(time.Now(), dial.Local(candidates[step.Candidate:]))
			if w.Plain && !x.Address.Proves {
				return d.try(ctx, transports.DialSpec{Address: w.Address, From: w.From}, x.Greeting[:], limit)
			}
			return d.c.dialHost(ctx, d.h.Host, x.Host, w, limit, func() {
				d.tell(func() { d.dance.Connected(x.Host) })
			})
		},
	}
	why := func() error {
		if must {
			_, says := d.c.Routes.ForbidsPlain(to)
			err := s.Errors()
			return fmt.Errorf("%s, and it cannot be reached so: %w%s", says, err, d.c.Routes.Remedy(to, err))
		}
		missed := s.FailedCandidates()
		return missed[len(missed)-1].Err // the error of plain TCP
	}
	s.RoundFailed = func() {
		err := why()
		d.c.Log.Debug("cannot connect yet", "host", x.Host, "error", err)
		r.failed(s.FailedCandidates(), err, s.Errors())
	}
	l, w, last := s.Run(d.ctx)
	switch {
	case l != nil:
		d.c.FallBacks.Warn("channel", to, w, &s)
		if !d.tell(func() { d.dance.Dialed(d.add(l), x.Host) }) {
			_ = l.Close()
		}
	case last.Action == dynamic.GiveUp && d.ctx.Err() == nil:
		err := why()
		d.tell(func() {
			d.dance.Unreachable(x.Host, fmt.Errorf("no channel to %s is possible: %w", d.c.Routes.HostName(x.Host), err))
		})
	}
}

// rounds are the rounds over all candidates of a host of lower rank, which have failed.
type rounds struct {
	agent.Reach
	d          *dancer
	host       wire.HostRank
	candidates []routes.Candidate
}

// failed is called after each round. missed is how each candidate has failed, why says that for the
// operator.
func (r *rounds) failed(missed []dynamic.FailedCandidate, why, candidates error) {
	x := r.AtStart(time.Now(), missed)
	if x.Warn {
		then := fmt.Sprintf("the job ends if this lasts for %v", x.Left)
		if r.Own {
			then = fmt.Sprintf("the job ends after %v more", x.Left)
		}
		r.d.c.noAnswerYet(r.d.h, r.host, r.candidates, why, then)
	}
	switch {
	case x.Silent && r.Must && r.Own:
		r.d.noAnswer(r.host, r.candidates, candidates)
	case x.Silent:
		r.d.noAnswer(r.host, r.candidates, why)
	default:
		r.d.tell(func() { r.d.dance.DialFailed(r.host, why) })
	}
}

func (c *Channels) noAnswerYet(h *end, host wire.HostRank, by []routes.Candidate, why error, then string) {
	c.Log.Warn("no answer yet; "+then, "from", h.Config.Address, "to", c.Routes.HostName(host),
		"reason", c.withRemedy(why, c.Routes.World.Hosts[host].Client, by))
}

// noAnswer tells the dance that nothing of a host answers, and adds what to do about it. err is why
// no connection could be made of the candidates by.
func (d *dancer) noAnswer(h wire.HostRank, by []routes.Candidate, err error) {
	err = d.c.withRemedy(err, d.c.Routes.World.Hosts[h].Client, by)
	d.tell(func() {
		d.dance.NoAnswer(h, fmt.Errorf("from %v: %w", d.h.Config.Address, err))
	})
}

// withRemedy adds to the error what to do about hosts that cannot reach those of a client by some
// candidates.
func (c *Channels) withRemedy(err error, client wire.ClientRank, by []routes.Candidate) error {
	if what := dial.Remedy(c.Routes, client, by[len(by)-1]); what != "" {
		return fmt.Errorf("%w. %s", err, what)
	}
	return err
}

func (d *dancer) try(ctx context.Context, to transports.DialSpec, greeting []byte, limit time.Duration) (link.Link, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	l, err := d.c.Routes.Channels.Dial(ctx, to)
	if err != nil {
		return nil, err
	}
	t, err := dial.NewBlocking(ctx, l)
	if err == nil {
		err = t.WriteAll(greeting)
	}
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	d.c.Routes.Channels.Plugin.CountLink()
	return l, nil
}

func (d *dancer) missing() string {
	var names []string
	for _, h := range d.dance.Missing() {
		names = append(names, d.c.Routes.HostName(h))
	}
	return strings.Join(names, ", ")
}

// waitingFor says which channels are missing. It is called by another goroutine than the dance's.
func (d *dancer) waitingFor() string {
	answer := make(chan string, 1)
	if !d.tell(func() { answer <- d.missing() }) {
		return ""
	}
	return "the channels of " + <-answer
}

// Connect makes the channels of the site's hosts, and returns them by the host and the rank of the
// other end. All hosts dance at the same time.
func (c *Channels) Connect(ctx context.Context) ([]map[wire.HostRank]link.Link, error) {
	channels := make([]map[wire.HostRank]link.Link, len(c.ends))
	errs := make([]error, len(c.ends))
	var wg sync.WaitGroup
	for i, h := range c.ends {
		wg.Go(func() { channels[i], errs[i] = c.connect(ctx, h) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		for _, c := range channels {
			for _, l := range c {
				_ = l.Close() // a second time if its own dance failed
			}
		}
		return nil, err
	}
	return channels, nil
}
