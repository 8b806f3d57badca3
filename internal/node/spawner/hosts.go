package spawner

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/spawn"
)

// Nodes of a site's hosts ask each other by way of the head, in JSON. The node of the proc that
// spawns gets slots from the head (claim), has the host of each piece look for programs (prepare),
// start them (begin) and say when they are in Init (settled). Until then it can give them up (end).
// Each host gives the slots of its procs back to the head when they have ended (release).

// What is asked.
const (
	doNumber  = "number"  // of the next world that is spawned at the site
	doClaim   = "claim"   // slots for Commands on Hosts
	doRelease = "release" // those of Claim, at one host or all
	doPrepare = "prepare" // Part, with slots of Claim
	doBegin   = "begin"   // what was prepared for Claim
	doSettled = "settled" // whether that is in Init
	doEnd     = "end"     // gives it up
	doOver    = "over"    // nothing is left of it: tells who has spawned it why

	doWithdraw = "withdraw" // Claim, which may come later than this
)

// errand is what one host asks of another.
type errand struct {
	Do        string          `json:"do"`
	Claim     claim           `json:"claim,omitzero"`
	At        int             `json:"at,omitempty"`    // of a release: the host; -1: all
	Hosts     []int           `json:"hosts,omitempty"` // of a claim
	Most      int             `json:"most,omitempty"`
	Commands  []spawn.Command `json:"commands,omitempty"`
	Part      *spawn.Part     `json:"part,omitempty"`      // of prepare
	Elsewhere bool            `json:"elsewhere,omitempty"` // another site spawns it
	Start     *start          `json:"start,omitempty"`     // of begin
	Reason    string          `json:"reason,omitempty"`    // of end
	Failure   *failed         `json:"failure,omitempty"`   // of over
}

// failed is a failure of a part, as one host tells it another.
type failed struct {
	Text   string        `json:"text"`
	Status int           `json:"status"`
	Remote bool          `json:"remote,omitempty"`
	Weight ending.Weight `json:"weight"`
	Late   bool          `json:"late,omitempty"`
}

func (x *failed) outcome() ending.Outcome {
	return ending.Outcome{Failure: &ending.Failure{Text: x.Text, Status: x.Status, Remote: x.Remote, Weight: x.Weight}, Late: x.Late}
}

// result answers an errand.
type result struct {
	Number  int            `json:"number,omitempty"`
	Granted []int          `json:"granted,omitempty"`
	Pieces  []spawn.Piece  `json:"pieces,omitempty"`
	Wait    bool           `json:"wait,omitempty"` // it is not settled yet: ask again
	Refused *spawn.Refusal `json:"refused,omitempty"`
}

// How long hosts wait for each other.
const (
	settleTurn = 20 * time.Second // for one answer whether procs are in Init
	errandTime = 5 * time.Second  // for a host to hear what it is told
)

// askHost asks the spawner of a host. This one answers itself, as does one that has all hosts.
func (d *Spawner) askHost(ctx context.Context, host int, e *errand) (a result, err error) {
	if d.Hosts == nil || host == d.Self {
		return d.do(ctx, e), ctx.Err()
	}
	question, err := json.Marshal(e)
	if err != nil {
		return a, err
	}
	b, err := d.Ask(ctx, host, question)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(b, &a); err != nil {
		return a, fmt.Errorf("its answer cannot be read: %w", err)
	}
	return a, nil
}

// tellHost is askHost for what must be told although nobody waits any more.
func (d *Spawner) tellHost(host int, e *errand) {
	ctx, cancel := context.WithTimeout(context.Background(), errandTime)
	defer cancel()
	if _, err := d.askHost(ctx, host, e); err != nil {
		d.Log.Debug("a host of the site has not heard of the end of spawned procs", "host", d.hosts()[host].String(), "error", err)
	}
}

// Answer does what the node of another host of the site asks. ctx ends when it waits no longer.
func (d *Spawner) Answer(ctx context.Context, question []byte) []byte {
	var e errand
	if err := json.Unmarshal(question, &e); err != nil {
		return nil
	}
	b, _ := json.Marshal(d.do(ctx, &e)) // numbers and strings
	return b
}

func (d *Spawner) do(ctx context.Context, e *errand) (a result) {
	switch e.Do {
	case doNumber:
		d.mu.Lock()
		defer d.mu.Unlock()
		d.worlds++
		return result{Number: d.worlds}
	case doClaim:
		return d.reserveSlots(ctx, e)
	case doRelease:
		d.withSlots(func() {
			if e.At >= 0 {
				d.slots.ReleaseAt(e.Claim, e.At)
				return
			}
			d.slots.Cancel(e.Claim)
			d.slots.Release(e.Claim)
		})
		return a
	case doWithdraw:
		d.withSlots(func() { d.slots.Withdraw(e.Claim) })
		return a
	case doPrepare:
		if e.Part == nil || d.Hosts == nil {
			return result{Refused: spawn.Refuse(-1, "a part of nothing")}
		}
		if a.Refused = e.Part.Check(); a.Refused == nil {
			_, a.Refused = d.prepare(e.Claim, d.Self, e.Part, nil, e.Elsewhere)
		}
		return a
	}
	if e.Do == doOver {
		if h := d.hostedFor(e.Claim, e.At); h != nil {
			h.once.Do(func() {
				h.failure = e.Failure
				close(h.gone)
			})
			h.forget()
		}
		return a
	}
	p := d.preparedFor(e.Claim)
	if p == nil {
		return result{Refused: spawn.Refuse(-1, "host %s has not prepared, or has ended, what is to %s", d.hosts()[d.Self], e.Do)}
	}
	switch e.Do {
	case doBegin:
		if e.Start == nil || e.Start.Client < 0 || e.Start.Client >= len(e.Start.Sites) {
			return result{Refused: spawn.Refuse(-1, "a malformed order to begin %s", p.part.World)}
		}
		if err := p.begin(e.Start); err != nil {
			return result{Refused: spawn.Refuse(-1, "%v", err)}
		}
	case doSettled:
		return d.settledIn(ctx, p)
	case doEnd:
		p.end(ending.Ended(e.Reason))
	}
	return a
}

// preparedFor gives this host's part with slots of a claim.
func (d *Spawner) preparedFor(c claim) *Local {
	d.mu.Lock()
	defer d.mu.Unlock()
	if all := d.parts[c]; len(all) > 0 {
		return all[0]
	}
	return nil
}

// settledIn waits a while until a part's procs are in Init.
func (d *Spawner) settledIn(ctx context.Context, p *Local) (a result) {
	if p.done == nil {
		return result{Refused: spawn.Refuse(-1, "%s was not begun", p.part.World)}
	}
	turn := time.NewTimer(settleTurn)
	defer turn.Stop()
	select {
	case <-p.node.Ready():
	case <-p.done:
		a.Refused = p.settled()
	case <-turn.C:
		a.Wait = true
	case <-ctx.Done():
		a.Wait = true
	}
	return a
}

// hosted is what another host of the site starts of a world.
type hosted struct {
	spawner *Spawner
	claim   claim
	host    int
	part    *spawn.Part
	ctx     context.Context // until the world's procs are in Init
	over    atomic.Bool     // they are, or nobody waits for them: the world's server tells the rest

	once    sync.Once
	gone    chan struct{} // closed when the host has said that nothing of it is left
	failure *failed       // valid then; nil: it has ended well
}

// place is a claim at one host.
type place struct {
	claim
	at int
}

func (d *Spawner) hostedFor(c claim, at int) *hosted {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hosted[place{c, at}]
}

// whyGone gives the failure of a part, if it has one, as its host tells it: after the end of its world
// it waits a while for that.
func (h *hosted) whyGone(limit time.Duration) *failed {
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-h.gone:
		return h.failure
	case <-late.C:
		return nil
	}
}

// forget is for a part that nobody asks about any more.
func (h *hosted) forget() {
	h.spawner.mu.Lock()
	defer h.spawner.mu.Unlock()
	delete(h.spawner.hosted, place{h.claim, h.host})
}

// tellSpawner tells the node that has spawned a part, of another host, that nothing of it is left.
func (p *Local) tellSpawner() {
	if p.claim.Host == p.spawner.Self {
		return
	}
	e := &errand{Do: doOver, Claim: p.claim, At: p.at}
	if f := p.outcome.Failure; f != nil {
		e.Failure = &failed{Text: f.Text, Status: f.Status, Remote: f.Remote, Weight: f.Weight, Late: p.outcome.Late}
	}
	p.spawner.tellHost(p.claim.Host, e)
}

// prepareAt has another host look for the programs of a part.
func (d *Spawner) prepareAt(ctx context.Context, c claim, host int, p *spawn.Part, elsewhere bool) (*hosted, *spawn.Refusal) {
	h := &hosted{spawner: d, claim: c, host: host, part: p, ctx: ctx, gone: make(chan struct{})}
	d.mu.Lock()
	d.hosted[place{c, host}] = h
	d.mu.Unlock()
	a, err := d.askHost(ctx, host, &errand{Do: doPrepare, Claim: c, Part: p, Elsewhere: elsewhere})
	if err != nil {
		h.end(nil) // it may have heard
		return nil, h.unreached(err)
	}
	if a.Refused != nil {
		h.forget()
	}
	return h, a.Refused
}

func (h *hosted) unreached(err error) *spawn.Refusal {
	return h.part.Commands[0].Refuse(fmt.Sprintf("host %s of site %s cannot start it: %v", h.name(), h.site(), err))
}

func (h *hosted) name() config.Host { return h.spawner.hosts()[h.host] }

func (h *hosted) site() string { return h.spawner.Routes.Site.Name }

func (h *hosted) clients() int { return 1 }

func (h *hosted) begin(s *start) error {
	a, err := h.spawner.askHost(h.ctx, h.host, &errand{Do: doBegin, Claim: h.claim, Start: s})
	if err == nil && a.Refused != nil {
		err = a.Refused
	}
	if err != nil {
		return fmt.Errorf("host %s: %w", h.name(), err)
	}
	return nil
}

func (h *hosted) settled() *spawn.Refusal {
	for {
		a, err := h.spawner.askHost(h.ctx, h.host, &errand{Do: doSettled, Claim: h.claim})
		switch {
		case err != nil:
			return h.unreached(err)
		case !a.Wait:
			h.over.Store(a.Refused == nil)
			return a.Refused
		}
	}
}

func (h *hosted) end(f *ending.Failure) {
	if h.over.Swap(true) {
		return
	}
	e := &errand{Do: doEnd, Claim: h.claim}
	if f != nil {
		e.Reason = f.Text
	}
	h.spawner.tellHost(h.host, e)
	h.forget()
}
