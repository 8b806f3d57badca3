package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/node/procs"
	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/transports"
)

// errWouldLose is wrapped by the error for a reload that would end links.
var errWouldLose = errors.New("links would be lost")

// reload replaces the process of a transport's plugin. Links whose bytes pass
// through the old process end with it; where they are not resumed, that has to be
// meant.
func (n *node) reload(ctx context.Context, r links.Request) (*links.Reload, error) {
	var plugins []*host.Plugin // one of them may be for channels alone
	for _, t := range n.routes.Running() {
		if t.Name == r.Transport {
			plugins = append(plugins, t.Plugin)
		}
	}
	if len(plugins) == 0 {
		return nil, fmt.Errorf("%w: no plugin of transport %q runs at site %s", links.ErrRequest, r.Transport, n.opt.Site.Name)
	}
	answer := &links.Reload{Site: n.opt.Site.Name, Transport: r.Transport, Before: processOf(plugins[0])}
	answer.Resuming, answer.Lost = n.direct.through(r.Transport)
	if answer.Lost > 0 && !r.Force {
		return nil, fmt.Errorf("%w: the bytes of %d links of site %s pass through the plugin, and their routes have resume = false",
			errWouldLose, answer.Lost, n.opt.Site.Name)
	}
	n.log.Info("a plugin is replaced", "transport", r.Transport, "pid", answer.Before.PID, "links_to_resume", answer.Resuming, "links_lost", answer.Lost)
	for _, p := range plugins {
		if err := p.Reload(ctx); err != nil {
			return nil, fmt.Errorf("site %s: %w", n.opt.Site.Name, err)
		}
	}
	answer.After = processOf(plugins[0])
	return answer, nil
}

func processOf(p *host.Plugin) links.Process {
	s := p.Status()
	return links.Process{PID: s.PID, Version: s.Version, SHA256: s.Digest}
}

// through counts the links whose bytes pass through a transport's plugin: those that
// last, and others.
func (d *directLinks) through(transport string) (resumable, others int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for x, phase := range d.ties.All() {
		if phase != dynamic.Linked {
			continue
		}
		r := d.past.of(x.local, x.peer)
		if p := transports.DataPlane(r.plane); p == transports.PlaneFD || p == transports.PlanePeerSHM {
			continue
		}
		switch {
		case r.transport != transport || d.n.procs.Of(x.local).Phase() == procs.Finished:
		case d.sessions.Get(x) != nil:
			resumable++
		default:
			others++
		}
	}
	return resumable, others
}
