package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/node/accept"
	"github.com/openimpi/impi/internal/node/dial"
	"github.com/openimpi/impi/internal/node/direct"
	"github.com/openimpi/impi/internal/node/routes"
)

// Nodes of different sites know no way to each other but those of their procs. So a node asks
// another site over a link like that between two procs of the sites: a links.Request there, a
// links.Answer back.

const (
	maxQuestion = 16 << 10 // bytes
	maxAnswer   = 16 << 20
	siteLimit   = time.Second // for a node to answer another site
	mostAsked   = 2           // questions of other sites that are answered at a time
	mostTries   = 3           // hosts of a site that are tried
)

// Serve answers the node of another site.
func (c *Control) Serve(ctx context.Context, a *accept.Arrival) error {
	h, verdict := a.Hello, dynamic.Accepted
	switch r := c.Direct.Routes; {
	case c.Procs.Of(h.Dst) == nil || int(h.Src) >= r.World.Procs.Len():
		verdict = dynamic.UnknownRank
	case !r.Allows(h.Src, a.At.Transport), !r.AllowsPlane(h.Src, a.Link):
		verdict = dynamic.NotAllowed
	case c.asked.Add(1) > mostAsked:
		c.asked.Add(-1)
		verdict = dynamic.Busy
	default:
		defer c.asked.Add(-1)
	}
	if err := a.Answer(ctx, verdict); err != nil {
		return err
	}
	defer a.Link.Close()
	ctx, cancel := context.WithTimeout(ctx, siteLimit)
	defer cancel()
	b, err := dial.NewBlocking(ctx, a.Link)
	if err != nil {
		return err
	}
	m := dial.Messages{Blocking: b, Most: maxAnswer}
	var r links.Request
	if err := (dial.Messages{Blocking: b, Most: maxQuestion}).Read(&r); err != nil {
		return err
	}
	if r.Op != links.OpLinks || r.Host != "" {
		return m.Write(links.Answer{Error: fmt.Sprintf("%v: other sites may ask for links only, of all hosts", links.ErrRequest)})
	}
	r.Sites = false
	return m.Write(c.Answer(ctx, r))
}

// ofSites asks the job's other sites.
func (c *Control) ofSites(ctx context.Context, r links.Request) (others []links.Other) {
	if !c.isReady() || len(c.Procs.All()) == 0 {
		return nil
	}
	w := c.Site.Routes.World
	all := make([][]links.Other, len(w.Clients))
	var wg sync.WaitGroup
	for i := range w.Clients {
		if x := &w.Clients[i]; x.Own && x.Rank != w.Self && x.NProcs > 0 {
			wg.Go(func() { all[i] = c.ofOtherSite(ctx, x, r) })
		}
	}
	wg.Wait()
	for _, x := range all {
		others = append(others, x...)
	}
	return others
}

// ofOtherSite asks another site, by one of its first hosts that has procs and answers.
func (c *Control) ofOtherSite(ctx context.Context, x *startup.ClientInfo, r links.Request) []links.Other {
	var reasons []string
	for _, peer := range c.firstProcs(x) {
		a, err := c.askNode(ctx, peer, r)
		if err == nil && a.Node == nil {
			err = errors.New("its node says nothing of its links")
		}
		if err != nil {
			reasons = append(reasons, err.Error())
			continue
		}
		others := append([]links.Other{{About: a.Node.About, Node: a.Node}}, a.Others...)
		for i := range others {
			if others[i].Node != nil {
				others[i].Node.SetClock(time.Now())
			}
		}
		return others
	}
	about := links.About{Job: c.Name, ID: c.jobID(), Site: c.Site.Routes.SiteName(int(x.Rank)), Client: int(x.Rank)}
	return []links.Other{{About: about, Error: strings.Join(reasons, "; ")}}
}

// firstProcs returns the first procs of a site's first hosts.
func (c *Control) firstProcs(x *startup.ClientInfo) (ranks []wire.WorldRank) {
	w, last := c.Site.Routes.World, -1
	for i := range x.NProcs {
		rank := x.FirstProc + wire.WorldRank(i)
		if h := int(w.Procs.At(rank).Host); h != last {
			last, ranks = h, append(ranks, rank)
		}
		if len(ranks) == mostTries {
			break
		}
	}
	return ranks
}

// askNode asks the node of another site's proc.
func (c *Control) askNode(ctx context.Context, peer wire.WorldRank, r links.Request) (a links.Answer, err error) {
	x := direct.Pair{Local: c.Procs.All()[0].Rank(), Peer: peer}
	err = errors.New("no transport leads there, or the route has direct = false: run the command there too")
	for _, w := range c.Direct.Ways(x) {
		a, err = c.askBy(ctx, &dynamic.Hello{Src: x.Local, Dst: x.Peer, Status: true}, w, r)
		if err == nil || ctx.Err() != nil {
			return a, err
		}
	}
	return a, err
}

// askBy asks the node of another site's proc by one of the ways to it.
func (c *Control) askBy(ctx context.Context, hello *dynamic.Hello, w routes.Way, r links.Request) (a links.Answer, err error) {
	l, err := c.Direct.Dial(ctx, hello, w)
	if err != nil {
		return a, fmt.Errorf("%s: %w", w.T.Name, err)
	}
	defer l.Close()
	b, err := dial.NewBlocking(ctx, l)
	if err != nil {
		return a, fmt.Errorf("%s: %w", w.T.Name, err)
	}
	m := dial.Messages{Blocking: b, Most: maxAnswer}
	if err := m.Write(r); err != nil {
		return a, fmt.Errorf("%s: %w", w.T.Name, err)
	}
	if err := m.Read(&a); err != nil {
		return a, fmt.Errorf("%s: %w", w.T.Name, err)
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}
