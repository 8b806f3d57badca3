package spawner

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/spawn"
)

type hostClaim struct {
	claim
	at int
}

// hostPart is what one host of the site, this one or another, starts of a world for a proc of this
// node, or for another site that has asked this node.
type hostPart struct {
	hostClaim
	spawner *Spawner
	part    *spawn.Part
	of      *world          // nil: another site's world
	ctx     context.Context // ends when the world's procs are in Init
	what    *Local          // the part, if this node runs it and it is prepared
	begun   bool
	over    atomic.Bool // at another host: in Init, or not waited for; the world's server reports the rest

	once    sync.Once
	gone    chan struct{}  // closed when its host has reported that nothing of it is left
	outcome ending.Outcome // valid when gone is closed
}

func (h *hostPart) here() bool { return h.spawner.runs(h.at) }

// ask asks the host. If that is this node, the end of the part's context does not
// interrupt it.
func (h *hostPart) ask(e *hostRequest) (result, error) {
	e.Claim, e.At = h.claim, h.at
	if h.here() {
		return h.spawner.do(context.WithoutCancel(h.ctx), e), nil
	}
	return h.spawner.askHost(h.ctx, h.at, e)
}

// prepare has the host look for the programs. begin or end must be called afterwards.
func (h *hostPart) prepare() *spawn.Refusal {
	d := h.spawner
	d.mu.Lock()
	d.hostParts[h.hostClaim] = h
	d.mu.Unlock()
	a, err := h.ask(&hostRequest{Do: doPrepare, Part: h.part, Elsewhere: h.of == nil})
	if err != nil {
		h.end(nil) // it may have been received
		return h.unreached(err)
	}
	if a.Refused != nil {
		h.forget()
	}
	h.what = a.what
	return a.Refused
}

// begin has the host start its procs. The first of several hosts returns the address where it
// accepts the others.
func (h *hostPart) begin(s start) (head string, err error) {
	a, err := h.ask(&hostRequest{Do: doBegin, Start: &s})
	if err == nil && a.Refused != nil {
		err = a.Refused
	}
	h.begun = err == nil
	if err != nil && !h.here() {
		return "", fmt.Errorf("host %s: %w", h.name(), err)
	}
	return a.Head, err
}

// settled waits until the procs are in Init. If they are not, it says why, and which proc of the
// client is to blame, if one is.
func (h *hostPart) settled() (r *spawn.Refusal, proc int) {
	for {
		a, err := h.ask(&hostRequest{Do: doSettled, what: h.what})
		switch {
		case err != nil:
			return h.unreached(err), 0
		case !a.Wait:
			h.over.Store(a.Refused == nil)
			return a.Refused, a.Proc
		}
	}
}

// end ends what has begun or was prepared.
func (h *hostPart) end(f *ending.Failure) {
	if inInit := !h.here() && h.over.Swap(true); !spawn.TellsPart(h.here(), inInit) {
		return
	}
	e := &hostRequest{Do: doEnd, Claim: h.claim, At: h.at, why: f}
	if f != nil {
		e.Reason = f.Text
	}
	h.spawner.tellHost(h.at, e)
	if !h.here() || !h.begun {
		h.forget()
	}
}

// isGone is called when nothing of the part is left. f is the failure that its host reports, nil if
// it has ended well.
func (h *hostPart) isGone(f *failed) {
	h.once.Do(func() {
		h.outcome = f.outcome()
		close(h.gone)
	})
	h.forget()
}

// whyGone returns how the part of another host has ended, as that host reports. It waits for the
// report for at most limit; without one the outcome is zero.
func (h *hostPart) whyGone(limit time.Duration) (o ending.Outcome) {
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-h.gone:
		return h.outcome
	case <-late.C:
		return o
	}
}

func (d *Spawner) hostPartOf(at hostClaim) *hostPart {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hostParts[at]
}

// forget is for a part that nobody asks about any more.
func (h *hostPart) forget() {
	h.spawner.mu.Lock()
	defer h.spawner.mu.Unlock()
	delete(h.spawner.hostParts, h.hostClaim)
}

func (h *hostPart) unreached(err error) *spawn.Refusal {
	return h.part.Commands[0].Refuse(fmt.Sprintf("host %s of site %s cannot start it: %v", h.name(), h.spawner.Routes.Site.Name, err))
}

func (h *hostPart) name() config.Host { return h.spawner.hosts()[h.at] }

// hostParts are what the hosts of this site start of a world, in the order of the new ranks.
type hostParts []*hostPart

// reserve gets slots for a part of a world and has its hosts prepare it; of is nil if another site
// asks for it. The host parts must be begun or ended.
func (d *Spawner) reserve(ctx context.Context, wanted *spawn.Part, hosts []int, of *world) (all hostParts, a spawn.Reply) {
	g, r := d.claimSlots(ctx, wanted, hosts)
	if r != nil {
		return nil, spawn.Reply{Refused: r}
	}
	for i := range g.hostParts {
		x := &g.hostParts[i]
		all = append(all, &hostPart{hostClaim: hostClaim{g.claim, x.Host}, spawner: d, part: x.CommandsOf(wanted), of: of, ctx: ctx, gone: make(chan struct{})})
	}
	refusals := make([]*spawn.Refusal, len(all))
	all.each(func(i int, h *hostPart) { refusals[i] = h.prepare() })
	var prepared hostParts
	for i, h := range all {
		if refusals[i] == nil {
			prepared = append(prepared, h)
		} else {
			a.Refused = cmp.Or(a.Refused, refusals[i])
		}
	}
	if a.Refused != nil {
		prepared.end(nil)
		d.tellHost(0, &hostRequest{Do: doRelease, Claim: g.claim, At: -1})
		return nil, a
	}
	a.Granted = g.procs
	return all, a
}

// blame assigns a refusal to the command of the proc that is to blame.
func (all hostParts) blame(r *spawn.Refusal, proc int) *spawn.Refusal {
	if r == nil || proc < 1 {
		return r
	}
	for _, h := range all {
		for i := range h.part.Commands {
			c := &h.part.Commands[i]
			if proc -= c.Procs; proc <= 0 {
				return c.Refuse(r.Reason)
			}
		}
	}
	return r
}

// each calls f for all host parts at the same time, and waits until all calls have returned.
func (all hostParts) each(f func(i int, h *hostPart)) {
	var wg sync.WaitGroup
	for i, h := range all {
		wg.Go(func() { f(i, h) })
	}
	wg.Wait()
}

// begin has all begin, as one client of the world.
func (all hostParts) begin(s start) (err error) {
	if len(all) == 1 {
		_, err = all[0].begin(s)
		return err
	}
	x := clientHosts{Secret: make([]byte, secretSize)}
	_, _ = rand.Read(x.Secret) // never fails
	for _, h := range all {
		procs := 0
		for i := range h.part.Commands {
			procs += h.part.Commands[i].Procs
		}
		x.Hosts, x.Procs = append(x.Hosts, h.at), append(x.Procs, procs)
	}
	s.Hosts = &x
	if x.Head, err = all[0].begin(s); err != nil {
		return err
	}
	errs := make([]error, len(all))
	all[1:].each(func(i int, h *hostPart) {
		mine, s := x, s
		mine.Self, s.Hosts = i+1, &mine
		_, errs[i] = h.begin(s)
	})
	return cmp.Or(errs...)
}

// settled waits until the procs of all are in Init. If those of one are not, all end.
func (all hostParts) settled() *spawn.Refusal {
	answers := make(chan *spawn.Refusal, len(all))
	for _, h := range all {
		go func() { answers <- all.blame(h.settled()) }() // the world is followed, or ended, meanwhile
	}
	for range all {
		if r := <-answers; r != nil {
			all.end(ending.EndedByParents("it could not be spawned: " + r.Reason))
			return r
		}
	}
	return nil
}

func (all hostParts) end(f *ending.Failure) { all.each(func(_ int, h *hostPart) { h.end(f) }) }

func (all hostParts) here() (list hostParts) {
	for _, h := range all {
		if h.here() {
			list = append(list, h)
		}
	}
	return list
}

func (all hostParts) awaitGone() {
	for _, h := range all.here() {
		if h.begun {
			<-h.gone
		}
	}
}

// outcomes lists how the host parts have ended. told is what the world's server knows of that.
func (all hostParts) outcomes(server Server, limit time.Duration) (parts []ending.Outcome, told *ending.Failure) {
	for _, h := range all.here() {
		<-h.gone
		parts = append(parts, h.outcome)
	}
	told = server.Failure()
	for _, h := range all {
		if h.here() {
			continue
		}
		if ending.AwaitsPart(parts) {
			parts = append(parts, h.whyGone(limit))
		}
		h.forget()
	}
	return parts, told
}
