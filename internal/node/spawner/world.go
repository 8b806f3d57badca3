package spawner

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/spawn"
	"github.com/openimpi/impi/internal/node/procs"
)

// part is what this site, one of its hosts, or another site starts of a world.
type part interface {
	site() string
	clients() int // of the new world, one after the other, which the part is
	begin(*start) error
	settled() *spawn.Refusal // waits until the procs are in Init, or says why they are not
	end(*ending.Failure)     // nothing is started, or what was is ended
}

// world is a world that a proc of this node has spawned. Its server runs in this node.
type world struct {
	spawn.World[*procs.Proc]
	parents *Parents
	name    string
	granted []int // procs, by command
	parts   []part
	local   []*Local // of the parts, those at this site
	server  Server

	ctx    context.Context // until its procs are in Init
	cancel context.CancelFunc
}

// state is how far the world is.
func (w *world) state() spawn.State {
	w.parents.mu.Lock()
	defer w.parents.mu.Unlock()
	return w.State()
}

// start gets slots for all parts and has them begin.
func (w *world) start(parent string, commands []spawn.Command) *spawn.Refusal {
	port, err := dynamic.ParsePort(parent)
	if err != nil {
		return spawn.Refuse(-1, "there is no port that the procs could call: %v", err)
	}
	d := w.parents.spawner
	var r *spawn.Refusal
	w.Port = port.Name()
	if w.name, r = d.nextName(w.ctx); r != nil {
		return r
	}
	plan, r := d.plan(w.ctx, w.name, w.By, commands)
	if r != nil {
		return r
	}
	for _, p := range plan {
		if r := w.reserve(p, spawn.MaxParts/len(plan)); r != nil {
			return r
		}
	}
	if len(w.parts) == 0 {
		return spawn.Refuse(-1, "there is room for none of the procs")
	}
	order := start{Parent: parent}
	for _, p := range w.parts {
		for range p.clients() {
			order.Sites = append(order.Sites, p.site())
		}
	}
	if err := w.serve(&order); err != nil {
		return spawn.Refuse(-1, "%v", err)
	}
	mine := order
	for _, p := range w.parts {
		if err := p.begin(&mine); err != nil {
			return spawn.Refuse(-1, "site %s: %v", p.site(), err)
		}
		mine.Client += p.clients()
	}
	return nil
}

// reserve gets slots for a part, on at most most hosts, unless it may do without procs and has to.
func (w *world) reserve(planned *spawn.Placed, most int) *spawn.Refusal {
	d := w.parents.spawner
	var parts []part
	var granted []int
	if planned.Client == d.Routes.World.Self {
		var r *spawn.Refusal
		if parts, granted, r = d.reserve(w.ctx, &planned.Part, planned.Hosts, most, w); r != nil {
			return r
		}
		for _, p := range parts {
			if l, ok := p.(*Local); ok {
				w.local = append(w.local, l)
			}
		}
	} else {
		if planned.Host == "" && most > 1 {
			planned.Most = most
		}
		e, r := d.request(w.ctx, planned)
		if r != nil {
			return r
		}
		if granted = e.granted; anyProcs(granted) {
			parts = append(parts, e)
		} else {
			e.end(nil)
		}
	}
	w.parts = append(w.parts, parts...)
	for i, n := range granted {
		w.granted[planned.Commands[i].Number] += n
	}
	return nil
}

// anyProcs tells whether any of the numbers is one.
func anyProcs(granted []int) bool {
	return slices.ContainsFunc(granted, func(n int) bool { return n > 0 })
}

// serve starts the server where the world's clients find each other.
func (w *world) serve(order *start) (err error) {
	d := w.parents.spawner
	root, limit := d.Routes.Site, d.Routes.Job.Limits.Start
	var key [8]byte
	_, _ = rand.Read(key[:]) // never fails
	order.Key = binary.BigEndian.Uint64(key[:])
	at := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if len(w.local) < len(w.parts) {
		at = root.Hosts[0].Address
	}
	job := &config.Job{File: d.Routes.Job.File, Limits: d.Routes.Job.Limits}
	for client, name := range order.Sites {
		job.Sites = append(job.Sites, config.Site{Name: name, Client: client})
	}
	site := config.Site{
		Server: config.Server{Embedded: true, Address: netip.AddrPortFrom(at, 0), Clients: len(order.Sites), Timeout: limit, Ours: true, TLS: root.Server.TLS},
		Auth:   config.Auth{Keyed: true, Key: order.Key},

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
		case <-w.ctx.Done():
			return spawn.Refuse(-1, "the job of the parents is ending")
		}
	}
	return nil
}

// giveUp ends what was started, and waits until nothing of it is left here.
func (w *world) giveUp(f *ending.Failure) {
	w.end(f)
	for _, p := range w.local {
		p.gone()
	}
	if w.server != nil {
		w.server.Close()
	}
}

// end ends the world, at all sites.
func (w *world) end(f *ending.Failure) {
	for _, p := range w.parts {
		p.end(f)
	}
	if len(w.local) == 0 && w.server != nil {
		go w.server.Close() // nobody here tells the others; it waits for nothing of ours
	}
}

// awaitEnd waits until nothing of the world is left, and says how it has ended.
func (w *world) awaitEnd() ending.Outcome {
	var parts []ending.Outcome
	for _, p := range w.local {
		<-p.done
		parts = append(parts, p.outcome)
	}
	told := w.server.Failure()
	for _, x := range w.parts {
		h, ok := x.(*hosted)
		if !ok {
			continue
		}
		// A proc may fail after the end of its world, of which the server hears nothing.
		if f := ending.OfWorld(parts, nil).Failure; f == nil || f.Remote {
			if why := h.whyGone(w.parents.spawner.Routes.Job.Limits.Stop + errandTime); why != nil {
				parts = append(parts, why.outcome())
			}
		}
		h.forget()
	}
	o := ending.OfWorld(parts, told)
	w.server.Close()
	return o
}
