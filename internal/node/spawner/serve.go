package spawner

import (
	"context"
	"fmt"
	"sync"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/spawn"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/node/dial"
	"github.com/openimpi/impi/internal/node/routes"
)

// Judge decides about a request of another node: those of the job's other sites are let in, by the
// links that their procs may have.
func (d *Spawner) Judge(hello dynamic.Hello, l link.Link, t *routes.Transport) dynamic.Verdict {
	job, from := d.Routes.World, routes.NoRank
	if hello.Src >= 0 && int(hello.Src) < len(job.Hosts) {
		from = d.Routes.FirstOf(wire.HostRank(hello.Src))
	}
	switch {
	case from == routes.NoRank, job.Procs[from].Client == job.Self:
		return dynamic.UnknownRank
	case !d.Routes.Allows(from, t), !d.Routes.AllowsPlane(from, l):
		return dynamic.NotAllowed
	}
	return dynamic.Accepted
}

// Serve does what another node wants, and closes its link then. ctx ends with the job.
func (d *Spawner) Serve(ctx context.Context, l link.Link) {
	defer l.Close()
	ctx, cancel := context.WithTimeout(ctx, d.Routes.Job.Limits.Start+dial.GreetLimit)
	defer cancel()
	b, err := dial.NewBlocking(ctx, l)
	if err != nil {
		return
	}
	node := messages{b}
	var part spawn.Part
	if err := node.read(&part); err != nil {
		d.Log.Debug("a spawn request ends", "error", err)
		return
	}
	r := part.Check()
	var p *Local
	if r == nil {
		p, r = d.reserve(ctx, &part, nil)
	}
	if r != nil {
		_ = node.write(reply{Refused: r})
		return
	}
	var order start
	if err = node.write(reply{Granted: p.granted}); err == nil {
		err = node.read(&order)
	}
	if err != nil || order.Client < 0 || order.Client >= len(order.Sites) || len(order.Sites) > spawn.MaxParts || !anyProcs(p.granted) {
		d.Log.Debug("a spawn is given up by who wanted it", "world", part.World, "error", err)
		p.end(nil)
		return
	}
	_ = p.begin(&order)
	p.watch(ctx, l)
	if node.write(reply{Refused: p.settled()}) == nil {
		_ = node.ReadFull(make([]byte, 1)) // who asked ends the link
	}
}

// watch waits until a part runs or has failed; if the other node ends the link before that, the part
// ends.
func (p *Local) watch(ctx context.Context, l link.Link) {
	watch, settled := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer settled()
	wg.Go(func() {
		defer settled()
		select {
		case <-p.node.Ready():
		case <-p.done:
		case <-watch.Done():
		}
	})
	b, err := dial.NewBlocking(watch, l)
	if err == nil {
		err = b.ReadFull(make([]byte, 1))
	}
	if watch.Err() == nil || ctx.Err() != nil {
		p.cancel(ending.ToldBy(fmt.Sprintf("the site that spawned %s gave it up: %v", p.part.World, err)))
	}
}
