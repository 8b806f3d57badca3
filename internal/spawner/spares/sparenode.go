package spares

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/spawn"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/connmgr/dial"
	"github.com/openimpi/impi/internal/lifetime"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// Settings are what the node of a spare site needs for its links.
type Settings struct {
	Name     string
	Instance uint64 // random
	Hosts    []config.Host
	Log      hclog.Logger
	Tasks    *lifetime.Group

	// Candidates returns how a host of the job can be dialled now, and whether only drained transports
	// would lead there. Dial makes a link to its node by one of them, which has accepted this node.
	Candidates func(to wire.HostRank) (now []routes.Candidate, drained bool)
	Dial       func(ctx context.Context, to wire.HostRank, by routes.Candidate) (link.Link, error)
	// HostName returns the name of a host of the job.
	HostName func(wire.HostRank) string
	// Procs returns the present number of procs that were spawned here.
	Procs func() int
	// Serve starts the procs that a link asks for, and closes the link.
	Serve func(l link.Link, part *spawn.Part)

	// Linked is called when a host has an idle link, Over when it has reported that its part of the
	// job is over, and Lost when it cannot be reached, or not any more; it is dialled again in any
	// case, unless it has refused that.
	Linked func(host wire.HostRank)
	Over   func(host wire.HostRank, failure string)
	Lost   func(host wire.HostRank, why string)

	Patience time.Duration // time for which a host may not answer before it is lost
}

// SpareNode is the node of a spare site with its links to the hosts of the job.
type SpareNode struct {
	Settings

	mu   sync.Mutex
	told []chan struct{} // get a signal when the site has to send its state again
}

// NewSpareNode makes a site without links.
func NewSpareNode(s Settings) *SpareNode { return &SpareNode{Settings: s} }

// KeepLinks keeps an idle link to each host, as tasks.
func (s *SpareNode) KeepLinks(hosts []wire.HostRank) {
	for _, h := range hosts {
		k := &hostLink{SpareNode: s, to: h, again: make(chan struct{}, 1), events: make(chan event), offers: spawn.NewHostOffer(s.Patience)}
		s.mu.Lock()
		s.told = append(s.told, k.again)
		s.mu.Unlock()
		s.Tasks.Go(k.run)
	}
}

// ProcsChanged makes the site send the hosts the number of procs, if it has changed.
func (s *SpareNode) ProcsChanged() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, again := range s.told {
		select {
		case again <- struct{}{}:
		default: // a signal is already pending
		}
	}
}

// hostLink is the idle link to one host, which is made again and again.
type hostLink struct {
	*SpareNode
	to     wire.HostRank
	again  chan struct{}
	events chan event
	number int // of the current link
	offers *spawn.HostOffer
	ways   []routes.Candidate // those that offers has been told of
}

type event struct {
	number int
	order  Order // zero: the link has ended
	link   link.Link
	why    error
}

// run keeps the link until the host's part of the job is over, or it does not want to be dialled.
func (k *hostLink) run() {
	ctx := context.Context(k.Tasks)
	k.offers.Begin(k.Procs())
	for ctx.Err() == nil && !k.offers.Over() {
		if x, ok := k.offers.Next(); ok {
			k.carryOut(ctx, x)
			continue
		}
		var due <-chan time.Time
		if at, waits := k.offers.Deadline(); waits {
			due = time.After(time.Until(at))
		}
		select {
		case <-due:
			k.offers.Tick(time.Now())
		case <-k.again:
			k.offers.Changed(k.Procs())
		case e := <-k.events:
			k.heard(e)
		case <-ctx.Done():
		}
	}
}

func (k *hostLink) carryOut(ctx context.Context, x spawn.OfferStep) {
	switch x.Action {
	case spawn.ListCandidates:
		k.offers.Changed(k.Procs())
		var drained bool
		if k.ways, drained = k.Candidates(k.to); drained {
			k.Log.Debug("no link to a host of the job is made while transports are drained", "host", k.HostName(k.to))
			k.offers.Drained(time.Now())
			return
		}
		k.offers.Candidates(time.Now(), len(k.ways))
	case spawn.DialOffer:
		l, err := k.Dial(ctx, k.to, k.ways[x.Candidate])
		if err == nil {
			err = k.introduce(ctx, l, x.Procs)
		}
		if refused, ok := errors.AsType[*RefusedError](err); ok {
			k.offers.Refused()
			k.lose(refused)
			return
		}
		if err != nil {
			k.Log.Debug("a host of the job has not taken a link", "host", k.HostName(k.to), "reason", err)
		}
		k.offers.Dialled(time.Now(), dial.ResultOf(err))
	case spawn.OfferLinked:
		k.Linked(k.to)
	case spawn.OfferLost:
		if x.Final { // lose was called
			return
		}
		failed := dial.Dialing{DialPlan: k.offers.Plan(), Candidates: k.ways}
		err := failed.Errors()
		if err == nil {
			err = ErrNoCandidate
		}
		k.lose(err)
	}
}

// ErrNoCandidate means that a host of the job cannot be dialled by any transport.
var ErrNoCandidate = errors.New(`no transport is common to this site and the host, works between them and is allowed by the route "*" of both`)

func (k *hostLink) lose(why error) {
	k.Log.Warn("a host of the job cannot ask this spare site for procs", "host", k.HostName(k.to), "reason", why)
	k.Lost(k.to, fmt.Sprintf("%s cannot be reached: %v", k.HostName(k.to), why))
}

// heard handles what has come on a link, or its end.
func (k *hostLink) heard(e event) {
	switch {
	case e.order.Over:
		_ = e.link.Close()
		k.offers.Stop()
		k.Over(k.to, e.order.Failure)
	case e.number != k.number: // the link was replaced by the current one
	case e.order.Part != nil:
		k.offers.Taken()
	default:
		k.Log.Debug("the link to a host of the job has ended", "host", k.HostName(k.to), "reason", e.why)
		k.offers.Ended(time.Now())
	}
}

// RefusedError reports why a node of the job refuses this spare site.
type RefusedError struct{ Why string }

// Error returns a message with the node's reason.
func (r *RefusedError) Error() string { return "it does not take this spare site: " + r.Why }

func (k *hostLink) introduce(within context.Context, l link.Link, procs int) error {
	ctx, cancel := context.WithTimeout(within, answerLimit)
	defer cancel()
	o := offer{Site: k.Name, Instance: k.Instance, To: k.to, Procs: procs}
	for _, h := range k.Hosts[:min(len(k.Hosts), maxHosts)] {
		o.Hosts = append(o.Hosts, offeredHost{h.Address, h.Name})
	}
	b, err := dial.NewBlocking(ctx, l)
	var a taken
	if err == nil {
		err = dial.Messages{Blocking: b, MaxSize: maxOffer}.Write(o)
	}
	if err == nil {
		err = dial.Messages{Blocking: b, MaxSize: MaxOrder}.Read(&a)
	}
	if err == nil && a.Refused != "" {
		err = &RefusedError{a.Refused}
	}
	if err != nil {
		_ = l.Close()
		return err
	}
	k.number++
	number := k.number
	if !k.Tasks.Go(func() { k.await(within, l, number) }) {
		_ = l.Close()
		return within.Err()
	}
	return nil
}

func (k *hostLink) await(ctx context.Context, l link.Link, number int) {
	e := event{number: number, link: l}
	b, err := dial.NewBlocking(ctx, l)
	if err == nil {
		err = dial.Messages{Blocking: b, MaxSize: MaxOrder}.Read(&e.order)
	}
	if err == nil && e.order.Part == nil && !e.order.Over {
		err = errors.New("it has asked for nothing")
	}
	if e.why = err; err != nil {
		e.order = Order{}
		_ = l.Close()
	}
	if e.order.Part != nil {
		part := e.order.Part
		if !k.Tasks.Go(func() { k.Serve(l, part) }) {
			_ = l.Close()
		}
	}
	select {
	case k.events <- e:
	case <-ctx.Done():
		if e.order.Part == nil {
			_ = l.Close()
		}
	}
}
