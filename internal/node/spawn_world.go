package node

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/node/ending"
	"github.com/openimpi/impi/internal/node/procs"
	"github.com/openimpi/impi/internal/node/report"
	"github.com/openimpi/impi/internal/node/server"
	"github.com/openimpi/impi/internal/wireup"
)

// maxShares is how many clients a spawned world may have. IMPI ch.2: client_mask has
// 32 bits.
const maxShares = 32

// place is where a part of a spawned world is started: here or at another site.
type place interface {
	site() string
	begin(*spawnStart) error
	settled() *refusal   // waits until the procs are in Init, or says why they are not
	end(*ending.Failure) // nothing is started, or what was is ended
}

// spawnedWorld is a world that a proc of this node has spawned. Its server is here.
type spawnedWorld struct {
	n       *node
	by      *procs.Proc
	request uint64
	name    string
	port    dynamic.World // which its procs call
	granted []int         // procs, by command
	places  []place
	shares  []*share // of the places, those at this site
	server  *server.Server

	ctx    context.Context // until it is born
	cancel context.CancelFunc

	mu    sync.Mutex
	state dynamic.Spawned
	limit *time.Timer // of the call
}

// found gets places for all parts and has them start.
func (o *spawnedWorld) found(x *wireup.Meeting) *refusal {
	port, err := dynamic.ParsePort(x.Port)
	if err != nil {
		return refusing(-1, "there is no port that the procs could call: %v", err)
	}
	service := o.n.spawning
	o.port, o.name = port.Name(), service.name()
	parts, r := service.plan(o, x.Spawn)
	if r != nil {
		return r
	}
	for _, part := range parts {
		if r := o.reserve(part); r != nil {
			return r
		}
	}
	if len(o.places) == 0 {
		return refusing(-1, "there is room for none of the procs")
	}
	order := spawnStart{Parent: x.Port}
	for _, at := range o.places {
		order.Sites = append(order.Sites, at.site())
	}
	if err := o.serve(&order); err != nil {
		return refusing(-1, "%v", err)
	}
	for client, at := range o.places {
		mine := order
		mine.Client = client
		if err := at.begin(&mine); err != nil {
			return refusing(-1, "site %s: %v", at.site(), err)
		}
	}
	return nil
}

// reserve gets a place for a part, unless it may do without procs and has to.
func (o *spawnedWorld) reserve(part *plannedPart) (r *refusal) {
	service := o.n.spawning
	var at place
	var granted []int
	if part.own {
		var s *share
		if s, r = service.reserve(o.ctx, &part.spawnPart, false); r != nil {
			return r
		}
		at, granted, s.of = s, s.granted, o
		if anyProcs(granted) {
			o.shares = append(o.shares, s)
		}
	} else {
		var e *spawnRequest
		if e, r = service.send(o.ctx, part); r != nil {
			return r
		}
		at, granted = e, e.granted
	}
	if !anyProcs(granted) {
		at.end(nil)
		return nil
	}
	o.places = append(o.places, at)
	for i, n := range granted {
		o.granted[part.Commands[i].Number] += n
	}
	return nil
}

// serve starts the server where the world's clients find each other.
func (o *spawnedWorld) serve(order *spawnStart) (err error) {
	root := o.n.spawning.root
	var key [8]byte
	_, _ = rand.Read(key[:]) // never fails
	order.Key = binary.BigEndian.Uint64(key[:])
	at := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if len(o.shares) < len(o.places) {
		at = root.opt.Site.Hosts[0].Address
	}
	job := &config.Job{File: root.opt.Job.File, Limits: root.opt.Job.Limits}
	for client, name := range order.Sites {
		job.Sites = append(job.Sites, config.Site{Name: name, Client: client})
	}
	site := config.Site{
		Server: config.Server{Embedded: true, Address: netip.AddrPortFrom(at, 0), Clients: len(order.Sites), Timeout: job.Limits.Start, Ours: true, TLS: root.opt.Site.Server.TLS},
		Auth:   config.Auth{Keyed: true, Key: order.Key},

		Transports: root.opt.Site.Transports, // for its certificates
	}
	if o.server, err = server.Serve(job, site, report.Quiet{Logger: root.log.With("world", o.name)}); err != nil {
		return err
	}
	order.Server = o.server.Address()
	return nil
}

// awaitInit waits until all procs are in Init, or a place has failed, or the parents
// have.
func (o *spawnedWorld) awaitInit() *refusal {
	answers := make(chan *refusal, len(o.places))
	for _, at := range o.places {
		o.n.spawning.wg.Go(func() { answers <- at.settled() })
	}
	for range o.places {
		select {
		case r := <-answers:
			if r != nil {
				return r
			}
		case <-o.ctx.Done():
			return refusing(-1, "the job of the parents is ending")
		}
	}
	return nil
}

// giveUp ends what was started, and waits until nothing of it is left here.
func (o *spawnedWorld) giveUp(f *ending.Failure) {
	o.ask((*dynamic.Spawned).NotStarted)
	o.end(f)
	for _, s := range o.shares {
		s.gone()
	}
	if o.server != nil {
		o.server.Close()
	}
}

// end ends the world, at all sites.
func (o *spawnedWorld) end(f *ending.Failure) {
	for _, at := range o.places {
		at.end(f)
	}
	if len(o.shares) == 0 && o.server != nil {
		go o.server.Close() // nobody here tells the others; it waits for nothing of ours
	}
}

// ask tells the world's state something, and gives its answer.
func (o *spawnedWorld) ask(what func(*dynamic.Spawned) bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	answer := what(&o.state)
	if o.limit != nil && o.state.State() != dynamic.SpawnConnecting {
		o.limit.Stop()
	}
	return answer
}

func (o *spawnedWorld) is(s dynamic.SpawnState) bool {
	return o.ask(func(x *dynamic.Spawned) bool { return x.State() == s })
}

// await bounds the time in which the procs and their parents have to connect.
func (o *spawnedWorld) await() {
	limit := o.n.opt.Job.Limits.Start
	o.ask((*dynamic.Spawned).Started)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.limit = time.AfterFunc(limit, func() {
		if o.is(dynamic.SpawnConnecting) {
			o.end(ending.TimedOut("%v passed while %s and its parents connected", limit, o.name))
		}
	})
}

// follow waits for the end of the world and tells those whom it concerns.
func (o *spawnedWorld) follow() {
	var f *ending.Failure
	late := false
	for _, s := range o.shares {
		<-s.done
		if s.failure != nil && (f == nil || f.Remote) {
			f, late = s.failure, s.late
		}
	}
	if told := o.server.Failure(); f == nil {
		f = told
	}
	o.server.Close()
	reason := "it ended before it had connected with its parents"
	if f != nil {
		reason = f.Text
	}
	var tooEarly, theirs bool
	o.ask(func(x *dynamic.Spawned) bool {
		tooEarly, theirs = x.Ended()
		return true
	})
	log := o.n.log
	switch {
	case tooEarly:
		log.Debug("a spawned world has ended too early", "world", o.name, "reason", reason)
	case f == nil:
	case theirs, o.n.spawning.ctx.Err() != nil:
		up := *f
		up.Text = fmt.Sprintf("%s, which %v has spawned, failed: %s", o.name, o.by.Who(), f.Text)
		o.n.inherit(&up, late)
	default:
		log.Warn("a spawned world that had parted from its parents has failed", "world", o.name, "problem", f.Text)
	}
	o.n.direct.meet.breakPort(o, o.name+": "+reason)
}
