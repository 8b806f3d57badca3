package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/site/client"
)

// Answer answers a request at the control socket, for any host of the site.
func (c *Control) Answer(ctx context.Context, r links.Request) links.Answer {
	if r.Op == links.OpLinks && r.Sites && r.Host == "" && !r.Here {
		return c.ofJob(ctx, r)
	}
	host, err := c.hostOf(r)
	switch {
	case err != nil:
		return links.Answer{Error: err.Error()}
	case r.Op == links.OpReread && r.Host == "":
		return c.Reread(ctx)
	case c.Cluster == nil:
		return c.answer(ctx, r)
	case host != c.Cluster.Self:
		a, err := c.ask(ctx, host, r)
		if err != nil {
			return links.Answer{Error: err.Error()}
		}
		return a
	case r.Op == links.OpLinks && r.Host == "" && !r.Here:
		return c.ofSite(ctx, r)
	}
	return c.answer(ctx, r)
}

func (c *Control) hostOf(r links.Request) (int, error) {
	self, hosts := 0, 0
	if c.Cluster != nil {
		self, hosts = c.Cluster.Self, len(c.Cluster.Hosts)
	}
	switch {
	case r.Host != "":
		for i := range hosts {
			if (c.hostName(i) == r.Host || c.Cluster.Address(i) == r.Host) && (r.Number == 0 || r.Number == i+1) {
				return i, nil
			}
		}
		return 0, fmt.Errorf("%w: site %s has no node for host %s alone", links.ErrRequest, c.Site.Routes.Site.Name, r.Host)
	case r.Op == links.OpProbe && c.isReady():
		w := c.Site.Routes.World
		if r.Local < 0 || r.Local >= w.Procs.Len() {
			break // reported by the measurement itself
		}
		if i := int(w.Procs.At(wire.WorldRank(r.Local)).Host - w.Clients[w.Self].FirstHost); i >= 0 && i < hosts {
			return i, nil
		}
	}
	return self, nil
}

// hostName is what a host of the site is called: by its name in the file, or else by the address
// that its links use, which the site's network may have chosen instead of the file's.
func (c *Control) hostName(host int) string {
	name := c.Cluster.Address(host)
	if _, err := netip.ParseAddr(name); err != nil || !c.isReady() {
		return name
	}
	w := c.Site.Routes.World
	return w.Hosts[int(w.Clients[w.Self].FirstHost)+host].Address.Addr().String()
}

func (c *Control) ofJob(ctx context.Context, r links.Request) links.Answer {
	r.Sites = false
	within, cancel := beforehand(ctx)
	defer cancel()
	var elsewhere []links.HostAnswer
	var wg sync.WaitGroup
	wg.Go(func() { elsewhere = c.ofSites(within, r) })
	own := c.Answer(ctx, r)
	wg.Wait()
	own.Others = append(own.Others, elsewhere...)
	return own
}

// beforehand returns a context for what must be done before this node's own answer.
func beforehand(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithTimeout(ctx, time.Until(deadline)*7/8)
	}
	return ctx, func() {}
}

// ofSite gathers the answers of the nodes of all hosts. Those that do not answer in time are named.
// All hosts together report as many pairs as one node would.
func (c *Control) ofSite(ctx context.Context, r links.Request) links.Answer {
	n := len(c.Cluster.Hosts)
	r.Views = max(1, links.MaxViews/n)
	within, cancel := beforehand(ctx)
	defer cancel()
	all := make([]links.HostAnswer, n)
	var own links.Answer
	var wg sync.WaitGroup
	for host := range n {
		wg.Go(func() {
			if host == c.Cluster.Self {
				own = c.answer(ctx, r)
			} else {
				all[host] = c.other(within, host, r)
			}
		})
	}
	wg.Wait()
	own.Others = append(all[:c.Cluster.Self:c.Cluster.Self], all[c.Cluster.Self+1:]...)
	return own
}

func (c *Control) other(ctx context.Context, host int, r links.Request) links.HostAnswer {
	began, here := time.Now(), place{c.Site.Routes.Site.Client, host}
	a, err := c.ask(ctx, host, r)
	if err == nil && a.Node != nil {
		c.mute.answered(here)
		return links.HostAnswer{About: a.Node.NodeInfo, Node: a.Node}
	}
	about := c.about()
	about.PID, about.Parent = 0, 0
	about.Host, about.Number = c.hostName(host), host
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		err = links.ErrSilent
	case err == nil:
		err = errors.New("its node says nothing of its links")
	}
	return links.HostAnswer{About: about, Error: err.Error(), Since: c.mute.since(here, began)}
}

func (c *Control) ask(ctx context.Context, host int, r links.Request) (a links.Answer, err error) {
	question, err := json.Marshal(r)
	if err != nil {
		return a, err
	}
	b, err := c.Cluster.Ask(ctx, client.Inspection, host, question)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(b, &a); err != nil {
		return a, fmt.Errorf("its answer cannot be read: %w", err)
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	if a.Node != nil {
		a.Node.SetClock(time.Now()) // its machine's clock may be wrong
	}
	return a, nil
}

func (c *Control) answerOther(ctx context.Context, question []byte) []byte {
	var r links.Request
	if err := json.Unmarshal(question, &r); err != nil {
		return nil
	}
	a := links.Answer{}
	if r.Op == links.OpReread && r.Host == "" { // for the whole site: this node is its head
		a = c.Reread(ctx)
	} else {
		a = c.answer(ctx, r)
	}
	b, _ := json.Marshal(a) // numbers and strings
	return b
}
