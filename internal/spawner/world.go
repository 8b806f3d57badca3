package spawner

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"net/netip"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/spawn"
	"github.com/openimpi/impi/internal/procs"
	"github.com/openimpi/impi/internal/routes"
)

// part is what one site starts of a world: host parts at this site, a remote at another one.
type part interface {
	begin(start) error       // as a client of the world
	settled() *spawn.Refusal // waits until the procs are in Init, or returns why they are not
	end(*ending.Failure)     // starts nothing, or ends what was started
}

// world is a world that a proc of this node has spawned. Its server runs in this node.
type world struct {
	spawn.SpawnedWorld[*procs.Proc]
	*spawn.Transaction
	parents *Parents
	name    string
	parts   []part    // by client
	own     hostParts // of the parts: what hosts of this site start
	server  Server

	ctx    context.Context // ends when its procs are in Init
	cancel context.CancelFunc
}

func (w *world) state() spawn.State {
	w.parents.mu.Lock()
	defer w.parents.mu.Unlock()
	return w.State()
}

func (w *world) start(parent string) *spawn.Refusal {
	port, err := dynamic.ParsePort(parent)
	if err != nil {
		return spawn.Refuse(-1, "the procs have no port to connect to: %v", err)
	}
	d := w.parents.spawner
	var r *spawn.Refusal
	w.Port = port.Name()
	if w.name, r = d.nextName(w.ctx); r != nil {
		return r
	}
	plan, r := d.plan(w.ctx, w.name, w.Spawner, w.Commands)
	if r != nil {
		return r
	}
	w.SetPlan(plan)
	for p, ok := w.Next(); ok; p, ok = w.Next() {
		if r := w.reserve(p); r != nil {
			return r
		}
	}
	if r := w.Begin(); r != nil {
		return r
	}
	order := start{Parent: parent, Survive: d.Routes.Job.Survive}
	for _, p := range w.Parts {
		if int(p.NewClient) == len(order.Sites) {
			order.Sites = append(order.Sites, d.siteOf(p))
		}
	}
	if err := w.serve(&order); err != nil {
		return spawn.Refuse(-1, "%v", err)
	}
	for i, p := range w.parts {
		order.Client = i
		if err := p.begin(order); err != nil {
			return spawn.Refuse(-1, "site %s: %v", order.Sites[i], err)
		}
	}
	return nil
}

func (d *Spawner) siteOf(p *spawn.PlacedPart) string {
	switch p.Client {
	case d.Routes.World.Self:
		return d.Routes.Site.Name
	case spawn.NoClient:
		return p.Spare
	}
	return d.Routes.SiteName(int(p.Client))
}

// reserve gets slots for a part. They are given back if the world does not take the answer.
func (w *world) reserve(p *spawn.PlacedPart) *spawn.Refusal {
	var of part
	var own hostParts
	var a spawn.Reply
	if d := w.parents.spawner; p.Client == d.Routes.World.Self {
		own, a = d.reserve(w.ctx, &p.Part, p.Hosts, w)
		of = own
	} else {
		of, a = d.request(w.ctx, p)
	}
	switch {
	case a.Refused != nil: // nothing is left of it
	case !w.Answered(p, a):
		of.end(nil)
	case int(p.NewClient) < len(w.parts): // it is of the same client as the part before it
		w.parts[p.NewClient] = append(w.parts[p.NewClient].(hostParts), own...)
		w.own = append(w.own, own...)
	default:
		w.parts = append(w.parts, of)
		w.own = append(w.own, own...)
	}
	return a.Refused
}

func (w *world) serve(order *start) (err error) {
	d := w.parents.spawner
	root, limit := routes.CurrentSite(d.Routes), routes.CurrentLimits(d.Routes).Start
	var key [8]byte
	_, _ = rand.Read(key[:]) // never fails
	order.Key = binary.BigEndian.Uint64(key[:])
	at := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	for _, p := range w.parts {
		if own, is := p.(hostParts); !is || !own[0].here() { // the client's node is elsewhere
			at = root.Hosts[0].Address
		}
	}
	job := &config.Job{File: d.Routes.Job.File, Survive: order.Survive, Limits: routes.CurrentLimits(d.Routes)}
	for client, name := range order.Sites {
		job.Sites = append(job.Sites, config.Site{Name: name, Client: client})
	}
	site := config.Site{
		Server: config.Server{Embedded: true, Address: netip.AddrPortFrom(at, 0), Clients: len(order.Sites), Timeout: limit, Ours: true, TLS: root.Server.TLS},
		Auth:   config.Auth{Keyed: true, Key: order.Key},
		Ports:  root.Ports,

		Transports: root.Transports, // for its certificates
	}
	if w.server, err = d.NewServer(job, site, w.name); err != nil {
		return err
	}
	order.Server = w.server.Address()
	return nil
}

// awaitInit waits until all procs are in Init, or a part has failed, or the parents have.
func (w *world) awaitInit() *spawn.Refusal {
	answers := make(chan *spawn.Refusal, len(w.parts))
	for _, p := range w.parts {
		go func() { answers <- p.settled() }() // the world is followed, or ended, meanwhile
	}
	for range w.parts {
		select {
		case r := <-answers:
			if r != nil {
				return r
			}
			w.PartInInit()
		case <-w.ctx.Done():
			return spawn.Refuse(-1, "the job of the parents is ending")
		}
	}
	return nil
}

// giveUp ends what was started, and waits until nothing of it is left here.
func (w *world) giveUp(f *ending.Failure) {
	w.end(f)
	w.own.awaitGone()
	if w.server != nil {
		w.server.Close()
	}
}

func (w *world) end(f *ending.Failure) {
	for _, p := range w.parts {
		p.end(f)
	}
	if spawn.EndsServer(len(w.own.here())) && w.server != nil {
		go w.server.Close() // it waits for nothing of ours
	}
}

func (w *world) awaitEnd() ending.Outcome {
	parts, told := w.own.outcomes(w.server, routes.CurrentLimits(w.parents.spawner.Routes).Stop+hostRequestTime)
	o := ending.WorldOutcome(parts, told, w.parents.spawner.Routes.Job.Survive)
	w.server.Close()
	return o
}
