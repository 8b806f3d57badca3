package inspect

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/openimpi/impi/internal/links"
)

// Reread makes all hosts of the site read their job file again. All check the file before any
// applies something: if one finds a fault, or a host is not reached, nothing changes.
func (c *Control) Reread(ctx context.Context) links.Answer {
	switch {
	case !c.isReady():
		return links.Answer{Error: fmt.Sprintf("%v: the job does not run yet", links.ErrRequest)}
	case c.Cluster == nil:
		return c.answer(ctx, links.Request{Op: links.OpReread})
	case !c.Cluster.IsHead():
		a, err := c.ask(ctx, 0, links.Request{Op: links.OpReread})
		if err != nil {
			return links.Answer{Error: fmt.Sprintf("the head of the site, %s: %v", c.hostName(0), err)}
		}
		return a
	}
	c.rereading.Lock()
	defer c.rereading.Unlock()
	r := links.Request{Op: links.OpReread, Check: true}
	if c.Cluster.Ends != nil { // an engine has started the others, which have no file
		var err error
		if r.Text, err = c.Text(); err != nil {
			return links.Answer{Error: err.Error()}
		}
	}
	checked := c.rereadAll(ctx, r)
	if failed := judge(checked); failed {
		for i := range checked {
			checked[i].Changes = nil
		}
		return links.Answer{Rereads: checked}
	}
	r.Check = false
	return links.Answer{Rereads: c.rereadAll(ctx, r)}
}

// judge reports whether a host cannot take its file, or has a file that differs from the head's.
func judge(all []links.FileReload) (failed bool) {
	for i := range all {
		x := &all[i]
		if !x.Failed() && !all[0].Failed() && x.Digest != all[0].Digest {
			x.Problem = fmt.Sprintf("its file says other routes or limits than that of the head, %s: make %s the same on all hosts", all[0].Host, x.File)
		}
		failed = failed || x.Failed()
	}
	return failed
}

func (c *Control) rereadAll(ctx context.Context, r links.Request) []links.FileReload {
	within, cancel := beforehand(ctx)
	defer cancel()
	all := make([]links.FileReload, len(c.Cluster.Hosts))
	var wg sync.WaitGroup
	for host := range all {
		wg.Go(func() {
			of := r
			of.Host = c.Cluster.Address(host)
			if host == c.Cluster.Self {
				all[host] = c.reread(ctx, of)
			} else {
				all[host] = c.rereadAt(within, host, of)
			}
			all[host].Host = c.hostName(host)
		})
	}
	wg.Wait()
	return all
}

func (c *Control) rereadAt(ctx context.Context, host int, r links.Request) links.FileReload {
	a, err := c.ask(ctx, host, r)
	switch {
	case err == nil && len(a.Rereads) == 1:
		return a.Rereads[0]
	case err == nil:
		err = errors.New("its answer says nothing about its file")
	case errors.Is(err, context.DeadlineExceeded):
		err = links.ErrSilent
	}
	return links.FileReload{Site: c.Site.Routes.Site.Name, Problem: "not reached: " + err.Error()}
}

func (c *Control) reread(ctx context.Context, r links.Request) links.FileReload {
	a, err := c.Reload(ctx, r.Check, r.Text)
	if err != nil {
		a.Problem = err.Error()
	}
	return a
}
