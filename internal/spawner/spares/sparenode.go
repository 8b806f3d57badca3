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
	"github.com/openimpi/impi/plugins/sdk/link"
)

// Settings are what the node of a spare site needs for its links.
type Settings struct {
	Name     string
	Instance uint64 // random
	Hosts    []config.Host
	Log      hclog.Logger
	Tasks    *lifetime.Group

	// Dial makes a link to the node of a host of the job, which has accepted this node.
	Dial func(ctx context.Context, to wire.HostRank) (link.Link, error)
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
		k := &hostLink{SpareNode: s, to: h, again: make(chan struct{}, 1), events: make(chan event)}
		s.mu.Lock()
		s.told = append(s.told, k.again)
		s.mu.Unlock()
		s.Tasks.Go(k.run)
	}
}

// ProcsChanged makes the site send the hosts the number of procs.
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
}

type event struct {
	number int
	order  Order // zero: the link has ended
	link   link.Link
	why    error
}

// The pauses between dials of a host that does not answer.
const (
	firstPause = 50 * time.Millisecond
	mostPause  = 2 * time.Second
	lostPause  = 10 * time.Second       // once it is lost
	endedPause = 250 * time.Millisecond // after it has ended an idle link
)

// run dials the host until its part of the job is over, or it does not want to be dialled.
func (k *hostLink) run() {
	ctx := context.Context(k.Tasks)
	for lost := false; ctx.Err() == nil; {
		if err := k.offer(ctx); err != nil {
			var refused *RefusedError
			switch final := errors.As(err, &refused); {
			case ctx.Err() != nil, errors.Is(err, errOver):
				return
			case !lost || final:
				k.Log.Warn("a host of the job cannot ask this spare site for procs", "host", k.HostName(k.to), "reason", err)
				k.Lost(k.to, fmt.Sprintf("%s cannot be reached: %v", k.HostName(k.to), err))
				if final {
					return
				}
			}
			lost = true
			select {
			case <-time.After(lostPause):
			case <-ctx.Done():
			}
			continue
		}
		lost = false
		k.Linked(k.to)
		if k.idle(ctx) {
			return
		}
	}
}

// offer makes the next idle link. It fails when the host has not answered for as long as Patience,
// or has said that it takes no such link.
func (k *hostLink) offer(ctx context.Context) error {
	until := time.Now().Add(k.Patience)
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		select {
		case <-k.again: // the state that is sent now is up to date
		default:
		}
		l, err := k.Dial(ctx, k.to)
		if err == nil {
			err = k.introduce(ctx, l)
		}
		if _, ok := errors.AsType[*RefusedError](err); err == nil || ok || time.Now().After(until) {
			return err
		}
		k.Log.Debug("a host of the job is dialled again", "host", k.HostName(k.to), "reason", err)
		select {
		case <-time.After(pause):
		case e := <-k.events: // of the previous link, on which the host has sent its last message
			if k.isOver(e) {
				return errOver
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

var errOver = errors.New("the host's part of the job is over")

func (k *hostLink) isOver(e event) bool {
	if !e.order.Over {
		return false
	}
	_ = e.link.Close()
	k.Over(k.to, e.order.Failure)
	return true
}

// RefusedError reports why a node of the job refuses this spare site.
type RefusedError struct{ Why string }

// Error returns a message with the node's reason.
func (r *RefusedError) Error() string { return "it does not take this spare site: " + r.Why }

func (k *hostLink) introduce(within context.Context, l link.Link) error {
	ctx, cancel := context.WithTimeout(within, answerLimit)
	defer cancel()
	o := offer{Site: k.Name, Instance: k.Instance, To: k.to, Procs: k.Procs()}
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

// idle waits until another link is needed. over: none is, as the host's part of the job is over.
func (k *hostLink) idle(ctx context.Context) (over bool) {
	for {
		select {
		case <-ctx.Done():
			return true
		case <-k.again:
			return false
		case e := <-k.events:
			switch {
			case k.isOver(e):
				return true
			case e.order.Part != nil:
				if e.number == k.number {
					return false
				}
			case e.number == k.number: // otherwise the link was replaced by the current one
				k.Log.Debug("the link to a host of the job has ended", "host", k.HostName(k.to), "reason", e.why)
				select {
				case <-time.After(endedPause):
				case <-ctx.Done():
				}
				return false
			}
		}
	}
}
