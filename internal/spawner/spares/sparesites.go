package spares

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/spawn"
	"github.com/openimpi/impi/internal/connmgr/dial"
	"github.com/openimpi/impi/internal/lifetime"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// SpareSites are the spare sites as a node of the job knows them.
type SpareSites struct {
	log   hclog.Logger
	names map[string]bool // of the sites that are not spare

	mu     sync.Mutex
	spares spawn.Spares[*offered, *request]
	idle   map[*offered]struct{}
	closed bool
	failed string         // how this node's part of the job has ended; empty: well, or not yet
	alarm  lifetime.Alarm // at the earliest deadline of a waiter
}

type offered struct {
	link link.Link
	site string
	stop context.CancelFunc // ends the watch of the link
	done chan struct{}      // closed when the watch has ended
}

// request is a spawn that waits for a link.
type request struct {
	answer chan spawn.SpareStep[*offered, *request]
}

// NewSpareSites returns the spare sites for a job's node, which has the spare sites that its file
// declares.
func NewSpareSites(job *config.Job, log hclog.Logger) *SpareSites {
	o := &SpareSites{log: log, names: make(map[string]bool), idle: make(map[*offered]struct{})}
	for _, s := range job.Sites {
		o.names[s.Name] = true
	}
	for _, s := range job.Spares {
		site := spawn.Site{Name: s.Name}
		for _, h := range s.Hosts {
			x := spawn.Host{}
			if h.Address.IsValid() {
				x.Addresses = append(x.Addresses, h.Address)
			}
			if h.Name != "" {
				x.Names = append(x.Names, h.Name)
			}
			if len(x.Addresses) > 0 { // otherwise its own node reports that
				site.Hosts = append(site.Hosts, x)
			}
		}
		o.spares.Declare(site)
	}
	return o
}

// with has f tell the machine of an event, and carries out the steps that follow.
func (o *SpareSites) with(f func()) {
	o.mu.Lock()
	f()
	var drop []*offered
	for {
		s, ok := o.spares.Next()
		if !ok {
			break
		}
		if s.Drop != nil {
			drop = append(drop, s.Drop)
			delete(o.idle, s.Drop)
			continue
		}
		if s.Link != nil {
			delete(o.idle, s.Link)
		}
		s.By.answer <- s
	}
	at, ok := o.spares.Deadline()
	o.alarm.Set(at, ok, func() { o.with(func() { o.spares.Tick(time.Now()) }) })
	o.mu.Unlock()
	for _, x := range drop {
		x.close()
	}
}

func (x *offered) close() {
	x.stop()
	<-x.done
	_ = x.link.Close()
}

// answerLimit is how long the two ends may take to send a message each.
const answerLimit = 10 * time.Second

// ServeLink handles a link on which a spare site's node has proved the job's secret. It owns the
// link.
func (o *SpareSites) ServeLink(within context.Context, l link.Link) {
	ctx, cancel := context.WithTimeout(within, answerLimit)
	defer cancel()
	b, err := dial.NewBlocking(ctx, l)
	var said offer
	if err == nil {
		err = dial.Messages{Blocking: b, MaxSize: maxOffer}.Read(&said)
	}
	if err == nil {
		err = o.check(&said)
	}
	if err != nil {
		o.refuse(b, l, err)
		return
	}
	o.add(b, l, &said)
}

func (o *SpareSites) check(said *offer) error {
	switch {
	case len(said.Site) > maxName:
		return fmt.Errorf("a spare site with a name of %d bytes, at most %d are taken", len(said.Site), maxName)
	case o.names[said.Site]:
		return fmt.Errorf("site %s of the job is not spare", said.Site)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if why := o.spares.Refuses(said.spawn()); why != "" {
		return errors.New(why)
	}
	return nil
}

func (o *SpareSites) add(b *dial.Blocking, l link.Link, said *offer) {
	x := &offered{link: l, site: said.Site, done: make(chan struct{})}
	watched, stop := context.WithCancel(context.Background())
	x.stop = stop
	if err := (dial.Messages{Blocking: b, MaxSize: MaxOrder}).Write(taken{}); err != nil {
		stop()
		_ = l.Close()
		return
	}
	go o.watch(watched, x)
	refused, before := "the job is over", spawn.SpareState("")
	o.with(func() {
		if o.closed {
			return
		}
		before = o.state(said.Site)
		o.idle[x] = struct{}{}
		if refused = o.spares.Offer(time.Now(), said.spawn(), x); refused != "" {
			delete(o.idle, x)
		}
	})
	if refused != "" {
		o.log.Debug("a spare site is not taken", "spare", said.Site, "reason", refused)
		x.stop()
		<-x.done
		_ = dial.Messages{Blocking: b, MaxSize: MaxOrder}.Write(Order{Over: true, Failure: o.failed}) // the only reason for a refusal
		_ = l.Close()
		return
	}
	if before == "" || before == spawn.SpareAbsent || before == spawn.SpareLost {
		o.log.Info("a spare site is there", "spare", said.Site, "was", cmp.Or(before, spawn.SpareAbsent))
	}
}

// refuse tells a spare site why its link is not taken. b may be nil.
func (o *SpareSites) refuse(b *dial.Blocking, l link.Link, err error) {
	o.log.Warn("a spare site is refused", "reason", err)
	if b != nil {
		_ = dial.Messages{Blocking: b, MaxSize: MaxOrder}.Write(taken{Refused: err.Error()}) // it may be gone
	}
	_ = l.Close()
}

// state is that of a site; empty: it is not known. The caller has mu.
func (o *SpareSites) state(name string) spawn.SpareState {
	for _, x := range o.spares.List() {
		if x.Name == name {
			return x.State
		}
	}
	return ""
}

// watch waits for the end of an idle link, on which the spare site says nothing.
func (o *SpareSites) watch(ctx context.Context, x *offered) {
	b, err := dial.NewBlocking(ctx, x.link)
	if err == nil {
		err = b.ReadFull(make([]byte, 1))
	}
	taken := ctx.Err() != nil
	close(x.done)
	if taken {
		return
	}
	why := "its node has ended without a word"
	switch {
	case err == nil:
		why = "its node has said something that it must not say"
	case !errors.Is(err, io.ErrUnexpectedEOF):
		why = err.Error()
	}
	var now spawn.SpareState
	known := false
	o.with(func() {
		if _, known = o.idle[x]; known {
			delete(o.idle, x)
			o.spares.Ended(time.Now(), x, why)
			now = o.state(x.site)
		}
	})
	if !known { // the owner of the link closes it
		return
	}
	x.stop()
	_ = x.link.Close()
	if now == spawn.SpareLost {
		o.warnLater(x.site, why)
	}
}

// endsSoon is how long a warning of a lost spare site waits for news that the job ends, which ends
// spare sites, too.
const endsSoon = 500 * time.Millisecond

// warnLater warns the operator of the loss of a spare site, unless it turns out to end with the
// job, or comes back.
func (o *SpareSites) warnLater(site, why string) {
	time.AfterFunc(endsSoon, func() {
		o.mu.Lock()
		lost := !o.closed && o.state(site) == spawn.SpareLost
		o.mu.Unlock()
		if lost {
			o.log.Warn("a spare site is lost, which is no matter of the job", "spare", site, "reason", why)
		}
	})
}

// ErrSpare is wrapped by the errors for a spare site that cannot be used.
var ErrSpare = errors.New("no link to a spare site")

// Link waits for a link to a spare site, at most for limit. The caller closes it and then calls
// ended.
func (o *SpareSites) Link(ctx context.Context, site string, limit time.Duration) (l link.Link, ended func(why string), err error) {
	r := &request{answer: make(chan spawn.SpareStep[*offered, *request], 1)}
	o.with(func() {
		if o.closed {
			r.answer <- spawn.SpareStep[*offered, *request]{Reason: "the job is over"}
			return
		}
		o.spares.Ask(time.Now(), r, site, limit)
	})
	var s spawn.SpareStep[*offered, *request]
	select {
	case s = <-r.answer:
	case <-ctx.Done():
		o.with(func() { o.spares.Cancel(r) })
		select {
		case s = <-r.answer: // the link came just before
		default:
			return nil, nil, fmt.Errorf("%w: %w", ErrSpare, context.Cause(ctx))
		}
	}
	if s.Link == nil {
		return nil, nil, fmt.Errorf("%w: %s", ErrSpare, s.Reason)
	}
	x := s.Link
	x.stop()
	<-x.done
	return x.link, func(why string) { o.with(func() { o.spares.Ended(time.Now(), x, why) }) }, nil
}

// List lists the spare sites.
func (o *SpareSites) List() []spawn.Spare {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.spares.List()
}

// Describe adds the spare sites to d. o may be nil: nodes of spawned worlds have none.
func (o *SpareSites) Describe(d *links.Node) {
	if o == nil {
		return
	}
	for _, x := range o.List() {
		s := links.Spare{Name: x.Name, State: string(x.State), Since: x.Since, Procs: x.Procs, Why: x.Why}
		for _, h := range x.Hosts {
			s.Hosts = append(s.Hosts, h.Addresses[0].String())
		}
		d.Spares = append(d.Spares, s)
	}
}

// overLimit is how long the end of the job waits for spare sites to hear of it.
const overLimit = 500 * time.Millisecond

// Close reports to the spare sites that this node's part of the job is over. The failure is empty
// if it went well. Spawns must not come any more.
func (o *SpareSites) Close(failure string) {
	o.mu.Lock()
	o.closed, o.failed = true, failure[:min(len(failure), maxFailure)]
	all := o.idle
	o.idle = make(map[*offered]struct{})
	o.alarm.Set(time.Time{}, false, nil)
	o.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), overLimit)
	defer cancel()
	var wg sync.WaitGroup
	for x := range all {
		wg.Go(func() {
			x.stop()
			<-x.done
			if b, err := dial.NewBlocking(ctx, x.link); err == nil {
				m := dial.Messages{Blocking: b, MaxSize: MaxOrder}
				if m.Write(Order{Over: true, Failure: o.failed}) == nil {
					_ = m.ReadFull(make([]byte, 1)) // the spare site ends the link
				}
			}
			_ = x.link.Close()
		})
	}
	wg.Wait()
}
