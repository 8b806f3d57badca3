package spawner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/openimpi/impi/core/spawn"
)

// claim names some slots of the site: the host whose node has asked for them, and a number.
type claim struct {
	Host   int    `json:"host"`
	Number uint64 `json:"number"`
}

// granted are slots that were got.
type granted struct {
	claim
	procs  []int // by command of the part
	pieces []spawn.Piece
}

// claimSlots gets slots for a part on some hosts of the site, at most most of them.
func (d *Spawner) claimSlots(ctx context.Context, part *spawn.Part, hosts []int, most int) (g *granted, r *spawn.Refusal) {
	d.mu.Lock()
	d.claims++
	g = &granted{claim: claim{d.Self, d.claims}}
	d.mu.Unlock()
	e := &errand{Do: doClaim, Claim: g.claim, Hosts: hosts, Most: most}
	for _, c := range part.Commands { // the head looks at nothing else of them
		e.Commands = append(e.Commands, spawn.Command{Number: c.Number, Path: c.Path, Procs: c.Procs, Info: map[string]string{"soft": c.Info["soft"]}})
	}
	a, err := d.askHost(ctx, 0, e)
	switch {
	case err != nil:
		d.tellHost(0, &errand{Do: doWithdraw, Claim: g.claim}) // the question may still be under way
		return nil, part.Commands[0].Refuse(fmt.Sprintf("the slots of site %s are not to be had: %v", d.Routes.Site.Name, err))
	case a.Refused != nil:
		return nil, a.Refused
	}
	g.procs, g.pieces = a.Granted, a.Pieces
	return g, nil
}

// reserveSlots is claimSlots at the head.
func (d *Spawner) reserveSlots(ctx context.Context, e *errand) (a result) {
	w := spawn.Wish{Commands: e.Commands, Hosts: e.Hosts, Most: max(e.Most, 1)}
	for i := range e.Commands {
		c := &e.Commands[i]
		soft, problem := spawn.ReadSoft(c.Info["soft"], c.Procs)
		if problem != "" {
			return result{Refused: c.Refuse(problem)}
		}
		w.Soft = append(w.Soft, soft)
	}
	if len(e.Hosts) == 0 || slices.ContainsFunc(e.Hosts, func(h int) bool { return h < 0 || h >= len(d.hosts()) }) {
		return result{Refused: spawn.Refuse(-1, "site %s has no host of %d", d.Routes.Site.Name, e.Hosts)}
	}
	if d.Present != nil {
		all := w.Hosts
		w.Hosts = slices.DeleteFunc(slices.Clone(all), func(h int) bool { return !d.Present(h) })
		if len(w.Hosts) == 0 {
			return result{Refused: spawn.Refuse(-1, "host %s of site %s has left, as its part of the job is over", d.hosts()[all[0]], d.Routes.Site.Name)}
		}
	}
	answer := make(chan spawn.SlotAnswer[claim], 1)
	d.withSlots(func() {
		d.asked[e.Claim] = answer
		d.slots.Procs = d.procsOfHosts()
		d.slots.Reserve(time.Now(), e.Claim, w)
	})
	var x spawn.SlotAnswer[claim]
	select {
	case x = <-answer:
	case <-ctx.Done():
		d.withSlots(func() {
			d.slots.Cancel(e.Claim)
			d.slots.Release(e.Claim) // it may have been granted just now
		})
		x = <-answer
	}
	return result{Granted: x.Granted, Pieces: x.Pieces, Refused: x.Refused}
}

// procsOfHosts are how many procs of the job each host has.
func (d *Spawner) procsOfHosts() (procs []int) {
	for i, h := range d.hosts() {
		if d.Hosts != nil {
			h.Procs = d.ProcsFor(i)
		}
		procs = append(procs, h.Procs)
	}
	return procs
}

// leaving tells whether procs of a claim may be about to end: they have disconnected from their
// parents, or some have finished. Of those of other hosts that is not known here, and so they may.
// The caller has the spawner's mu.
func (d *Spawner) leaving(c claim) bool {
	return c.Host != d.Self || len(d.parts[c]) == 0 || slices.ContainsFunc(d.parts[c], (*Local).leaving)
}

// giveBack gives all slots of a claim back.
func (d *Spawner) giveBack(c claim) {
	d.tellHost(0, &errand{Do: doRelease, Claim: c, At: -1})
}

// giveBackAt gives back the slots that a claim has on this host, whose procs have ended.
func (d *Spawner) giveBackAt(c claim, host int) {
	d.tellHost(0, &errand{Do: doRelease, Claim: c, At: host})
}

// nextName names the next world that is spawned at the site.
func (d *Spawner) nextName(ctx context.Context) (string, *spawn.Refusal) {
	a, err := d.askHost(ctx, 0, &errand{Do: doNumber})
	switch {
	case errors.Is(err, context.Canceled):
		return "", spawn.Refuse(-1, "the job of the parents is ending")
	case err != nil:
		return "", spawn.Refuse(-1, "the head of site %s cannot be asked: %v", d.Routes.Site.Name, err)
	}
	if len(d.Routes.World.Clients) == 1 {
		return fmt.Sprintf("spawn%d", a.Number), nil
	}
	return fmt.Sprintf("%s.spawn%d", d.Routes.Site.Name, a.Number), nil
}

// reserve gets slots for a part of a world and has its hosts check it; of is nil if another site
// asks for it. The parts of the hosts must be begun or ended.
func (d *Spawner) reserve(ctx context.Context, wanted *spawn.Part, hosts []int, most int, of *world) (parts []part, procs []int, r *spawn.Refusal) {
	g, r := d.claimSlots(ctx, wanted, hosts, most)
	if r != nil {
		return nil, nil, r
	}
	for i := range g.pieces {
		x := &g.pieces[i]
		var p part
		if d.Hosts == nil || x.Host == d.Self {
			p, r = d.prepare(g.claim, x.Host, x.Of(wanted), of, of == nil)
		} else {
			p, r = d.prepareAt(ctx, g.claim, x.Host, x.Of(wanted), of == nil)
		}
		if r != nil {
			for _, p := range parts {
				p.end(nil)
			}
			d.giveBack(g.claim)
			return nil, nil, r
		}
		parts = append(parts, p)
	}
	return parts, g.procs, nil
}
