package spawner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/openimpi/impi/core/spawn"
)

// claim names some slots of the site: the host whose node has asked for them, and a number.
type claim struct {
	Host   int    `json:"host"`
	Number uint64 `json:"number"`
}

type granted struct {
	claim
	procs     []int // by command of the part
	hostParts []spawn.HostPart
}

func (d *Spawner) claimSlots(ctx context.Context, part *spawn.Part, hosts []int) (g *granted, r *spawn.Refusal) {
	d.mu.Lock()
	d.claims++
	g = &granted{claim: claim{d.Self, d.claims}}
	d.mu.Unlock()
	e := &hostRequest{Do: doClaim, Claim: g.claim, Hosts: hosts}
	for _, c := range part.Commands { // the head needs nothing else of them
		e.Commands = append(e.Commands, spawn.Command{Number: c.Number, Path: c.Path, Procs: c.Procs, Info: map[string]string{"soft": c.Info["soft"]}})
	}
	a, err := d.askHost(ctx, 0, e)
	switch {
	case err != nil:
		d.tellHost(0, &hostRequest{Do: doWithdraw, Claim: g.claim}) // the claim may still be under way
		return nil, part.Commands[0].Refuse(fmt.Sprintf("cannot get slots of site %s: %v", d.Routes.Site.Name, err))
	case a.Refused != nil:
		return nil, a.Refused
	}
	g.procs, g.hostParts = a.Granted, a.HostParts
	return g, nil
}

// reserveSlots is claimSlots at the head.
func (d *Spawner) reserveSlots(ctx context.Context, e *hostRequest) (a result) {
	w, r := spawn.NewSlotRequest(e.Commands, e.Hosts)
	if r != nil {
		return result{Refused: r}
	}
	present := func(h int) bool { return d.Present == nil || d.Present(h) }
	if r := w.At(d.Routes.Site.Name, len(d.hosts()), present, func(h int) string { return d.hosts()[h].String() }); r != nil {
		return result{Refused: r}
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
	return result{Granted: x.Granted, HostParts: x.HostParts, Refused: x.Refused}
}

func (d *Spawner) procsOfHosts() (procs []int) {
	for i, h := range d.hosts() {
		if d.Hosts != nil {
			h.Procs = d.ProcsFor(i)
		}
		procs = append(procs, h.Procs)
	}
	return procs
}

// leaving reports whether procs of a claim may be about to end. The caller has the spawner's mu.
func (d *Spawner) leaving(c claim) bool {
	var here []bool
	for at, p := range d.parts {
		if at.claim == c {
			here = append(here, p.leaving())
		}
	}
	return spawn.MayLeave(here, c.Host == d.Self)
}

func (d *Spawner) nextName(ctx context.Context) (string, *spawn.Refusal) {
	a, err := d.askHost(ctx, 0, &hostRequest{Do: doNumber})
	switch {
	case errors.Is(err, context.Canceled):
		return "", spawn.Refuse(-1, "the job of the parents is ending")
	case err != nil:
		return "", spawn.Refuse(-1, "cannot ask the head of site %s: %v", d.Routes.Site.Name, err)
	}
	if len(d.Routes.World.Clients) == 1 && !d.Routes.Site.Spare {
		return fmt.Sprintf("spawn%d", a.Number), nil
	}
	return fmt.Sprintf("%s.spawn%d", d.Routes.Site.Name, a.Number), nil
}
