package site

import (
	"context"
	"errors"
	"fmt"

	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/plugins/host"
)

var errWouldLose = errors.New("links would be lost")

// Reload replaces the process of a transport's plugin. Links whose bytes pass through the old
// process break; if some of them are not resumed, the request must have Force. through counts
// resumable and other links.
func (s *Site) Reload(ctx context.Context, r links.Request, through func(transport string) (resumable, others int)) (*links.PluginReload, error) {
	var plugins []*host.Plugin // one of them may be for channels alone
	for _, t := range s.Routes.Running() {
		if t.Name == r.Transport {
			plugins = append(plugins, t.Plugin)
		}
	}
	if len(plugins) == 0 {
		return nil, fmt.Errorf("%w: no plugin of transport %q runs at site %s", links.ErrRequest, r.Transport, s.Routes.Site.Name)
	}
	answer := &links.PluginReload{Site: s.Routes.Site.Name, Transport: r.Transport, Before: processOf(plugins[0])}
	answer.Resuming, answer.Lost = through(r.Transport)
	if answer.Lost > 0 && !r.Force {
		return nil, fmt.Errorf("%w: the bytes of %d links of site %s pass through the plugin, and do not resume: their routes have resume = false, or they lead to another job whose route has it",
			errWouldLose, answer.Lost, s.Routes.Site.Name)
	}
	s.Log.Debug("a plugin is to be replaced", "transport", r.Transport, "pid", answer.Before.PID, "links_to_resume", answer.Resuming, "links_lost", answer.Lost)
	return s.replace(ctx, answer, plugins)
}

func (s *Site) replace(ctx context.Context, answer *links.PluginReload, plugins []*host.Plugin) (*links.PluginReload, error) {
	for _, p := range plugins {
		before := processOf(p)
		if err := p.Reload(ctx); err != nil {
			s.Log.Warn("a plugin was to be replaced, and its process of before goes on", "transport", answer.Transport, "pid", processOf(p).PID, "error", err)
			return nil, fmt.Errorf("site %s: %w", s.Routes.Site.Name, err)
		}
		s.Log.Info("a plugin is replaced", "transport", answer.Transport, "pid_before", before.PID, "pid", processOf(p).PID,
			"links_to_resume", answer.Resuming, "links_lost", answer.Lost)
	}
	answer.After = processOf(plugins[0])
	return answer, nil
}

func processOf(p *host.Plugin) links.Process {
	s := p.Status()
	return links.Process{PID: s.PID, Version: s.Version, SHA256: s.Digest}
}
