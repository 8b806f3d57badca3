package spawner

import (
	"context"
	"fmt"
	"sync"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/spawn"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/connmgr/dial"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// Judge decides about a request of another node.
func (d *Spawner) Judge(hello dynamic.Hello, l link.Link, t *routes.Transport) dynamic.Verdict {
	return spawn.Judge(d.Routes.World, wire.HostRank(hello.Src), func(first wire.WorldRank) bool {
		return d.Routes.Allows(first, t) && d.Routes.AllowsPlane(first, l)
	})
}

// Serve handles the request of another node on a link, and closes the link. ctx ends with the job.
func (d *Spawner) Serve(ctx context.Context, l link.Link) { d.ServePart(ctx, l, nil) }

// ServePart is Serve for a request whose part has been read, or nil if it has not.
func (d *Spawner) ServePart(ctx context.Context, l link.Link, part *spawn.Part) {
	defer l.Close()
	ctx, cancel := context.WithTimeout(ctx, routes.CurrentLimits(d.Routes).Start+dynamic.GreetLimit)
	defer cancel()
	b, err := dial.NewBlocking(ctx, l)
	if err != nil {
		return
	}
	node := dial.Messages{Blocking: b, MaxSize: maxMessage}
	if part == nil {
		part = &spawn.Part{}
		if err := node.Read(part); err != nil {
			d.Log.Debug("a spawn request ends", "error", err)
			return
		}
	}
	all, answer := d.reserveFor(ctx, part)
	var order start
	if err = node.Write(answer); answer.Refused != nil {
		return
	}
	if err == nil && len(all) > 0 {
		err = node.Read(&order)
	}
	if err != nil || order.Client < 0 || order.Client >= len(order.Sites) || len(order.Sites) > spawn.MaxClients {
		d.Log.Debug("the site that asked for a spawn has cancelled it", "world", part.World, "error", err)
		all.end(nil)
		return
	}
	if err := all.begin(order); err != nil {
		_ = node.Write(spawn.Reply{Refused: part.Commands[0].Refuse(err.Error())})
		all.end(nil)
		return
	}
	if len(all) > 0 && node.Write(spawn.Reply{Refused: all.watch(ctx, part.World, l)}) == nil {
		_ = node.ReadFull(make([]byte, 1)) // the node that asked ends the link
	}
}

// reserveFor gets slots for what another site asks for.
func (d *Spawner) reserveFor(ctx context.Context, wanted *spawn.Part) (hostParts, spawn.Reply) {
	if r := wanted.Check(); r != nil {
		return nil, spawn.Reply{Refused: r}
	}
	site := d.place(&d.Routes.World.Clients[d.Routes.World.Self])
	site.Name = d.Routes.Site.Name
	hosts, r := site.HostsFor(wanted, d.Hosts != nil)
	if r != nil {
		return nil, spawn.Reply{Refused: r}
	}
	return d.reserve(ctx, wanted, hosts, nil)
}

// watch waits until the procs are in Init, or says why they are not; if the other node ends the
// link before that, they are ended.
func (all hostParts) watch(ctx context.Context, world string, l link.Link) *spawn.Refusal {
	within, settled := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer settled()
	wg.Go(func() {
		b, err := dial.NewBlocking(within, l)
		if err == nil {
			err = b.ReadFull(make([]byte, 1))
		}
		if within.Err() == nil || ctx.Err() != nil {
			all.end(ending.RemoteFailure(fmt.Sprintf("the site that spawned %s has cancelled it: %v", world, err)))
		}
	})
	r := all.settled()
	if r != nil {
		all.awaitGone()
	}
	return r
}
