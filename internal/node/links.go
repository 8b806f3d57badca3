package node

import (
	"context"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/connmgr/accept"
	"github.com/openimpi/impi/internal/connmgr/channel"
	"github.com/openimpi/impi/internal/connmgr/direct"
	"github.com/openimpi/impi/internal/connmgr/meet"
	"github.com/openimpi/impi/internal/lifetime"
	"github.com/openimpi/impi/internal/operator/inspect"
	"github.com/openimpi/impi/internal/operator/probe"
	"github.com/openimpi/impi/internal/site"
)

// open makes everything by which links are made, and the Arrivals that accept them. A spawned world
// has the service names of the job that it was spawned in.
func (n *node) open(ctx context.Context) *accept.Arrivals {
	root := n
	if n.opt.spawned != nil {
		root = n.opt.root
	}
	n.tasks = lifetime.NewGroup(ctx)
	n.direct = direct.New(direct.Settings{
		Routes: n.routes, Procs: n.procs, Token: n.job.Token, Tasks: n.tasks, FallBacks: &n.fallBacks, Log: n.log,
	})
	n.meetings = meet.New(meet.Settings{
		Ctx: ctx, Begin: n.tasks.Go, Routes: n.routes, Procs: n.procs, Token: n.job.Token, Able: n.world != nil, Log: n.log,
		Names: meet.NameSettings{File: n.opt.Site.Names, Own: root.ownServer, Owner: root.job.Token, Log: n.log},
	})
	n.parents = n.spawner.NewParents(n.meetings, n.inherit)
	if n.spans.tracer != nil {
		n.parents.Spawning = n.spans.spawning
	}
	n.channels = channel.New(channel.Settings{
		Site: n.site, Routes: n.routes, Own: n.client.Token, Keys: n.keys,
		Tasks: n.tasks, FallBacks: &n.fallBacks, Log: n.log, Ready: n.ready, Deadline: n.deadline, OnDemand: n.opt.OnDemand,
	})
	n.prober = &probe.Prober{Links: n.direct}
	return accept.New(accept.Settings{Tasks: n.tasks, Log: n.log, Keys: n.keys, Handle: n.take})
}

func (n *node) keys(at *site.Listener) dynamic.Keys {
	others := n.meetings.Keys()
	return func(name dynamic.WorldID, of dynamic.Purpose) (dynamic.Token, bool) {
		if of == dynamic.OfChannel {
			return n.channels.Token(at.Host, name)
		}
		return others(name, of)
	}
}

// take passes on a link that has arrived, by the purpose in its greeting. Other nodes may be faster
// than this one, so all links but channels wait here until the procs run.
func (n *node) take(ctx context.Context, a *accept.Arrival) error {
	hello, t := a.Hello, a.At.Transport
	switch {
	case hello.Hosts:
		return n.channels.Accept(ctx, a)
	case a.At.Plain:
		return a.Answer(ctx, dynamic.NotAllowed)
	}
	select {
	case <-n.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	switch {
	case hello.Spawn:
		return n.takeSpawn(ctx, a)
	case hello.Spare:
		return takeSpare(ctx, n, a)
	case hello.Connect:
		return n.meetings.AcceptConnect(ctx, a.Link, a.Greeting, hello, t)
	case hello.World != dynamic.WorldID{}:
		return n.meetings.AcceptLink(ctx, a.Link, a.Greeting, hello, t)
	case hello.Probe:
		return n.prober.Answer(ctx, a)
	case hello.Status:
		return n.control.Serve(ctx, a)
	}
	return n.direct.Accept(ctx, a)
}

func (n *node) takeSpawn(ctx context.Context, a *accept.Arrival) error {
	verdict := dynamic.UnknownRank // a spawned world has no sites that could be asked
	if n.opt.spawned == nil {
		verdict = n.spawner.Judge(a.Hello, a.Link, a.At.Transport)
	}
	if err := a.Answer(ctx, verdict); err != nil {
		return err
	}
	if verdict != dynamic.Accepted || !n.tasks.Go(func() { n.spawner.Serve(n.tasks, a.Link) }) {
		return a.Link.Close()
	}
	return nil
}

func (n *node) running() inspect.Running {
	r := inspect.Running{Direct: n.direct, Channels: n.channels, Prober: n.prober, Worlds: n.meetings, Client: n.client, Losses: &n.survival, Spares: n.spareSites}
	for _, h := range n.hosts {
		r.Hosts = append(r.Hosts, inspect.Host{Host: h.Host, Switch: h.sw, NoBoard: h.noBoard})
	}
	return r
}
