package site

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/site/report"
	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// BeginTransports starts, in the background, the plugins of all transports that a route of the site
// names, and of one that can make IMPI's channels. The function that it returns waits for them, and
// changes the site only then.
func (s *Site) BeginTransports(ctx context.Context) (wait func() error) {
	names := s.wantedTransports()
	started := make([]*routes.Transport, len(names))
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		t, ok := s.Routes.Site.Transport(name)
		if !ok {
			errs[i] = s.noTransport(name)
			continue
		}
		wg.Go(func() { started[i], errs[i] = s.launchTransport(ctx, t) })
	}
	return sync.OnceValue(func() error {
		wg.Wait()
		for _, t := range started {
			if t != nil {
				s.Routes.Transports = append(s.Routes.Transports, t)
			}
		}
		errs = append(errs, s.Routes.CheckPins())
		if err := errors.Join(errs...); err != nil {
			return err
		}
		s.Routes.CloseRoutes()
		return s.chooseChannels(ctx)
	})
}

func (s *Site) noTransport(name string) error {
	return fmt.Errorf("site %s has no transport %q", s.Routes.Site.Name, name)
}

// wantedTransports lists the transports of all routes, the default route's first.
func (s *Site) wantedTransports() []string {
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, r := range append([]config.Route{s.Routes.Site.RouteTo("*")}, s.Routes.Site.Routes...) {
		for _, name := range r.Prefer {
			add(name)
		}
	}
	return names
}

func (s *Site) startTransport(ctx context.Context, name string) (*routes.Transport, error) {
	t, ok := s.Routes.Site.Transport(name)
	if !ok {
		return nil, s.noTransport(name)
	}
	return s.launchTransport(ctx, t)
}

func (s *Site) launchTransport(ctx context.Context, t config.Transport) (*routes.Transport, error) {
	p, err := host.Start(ctx, host.Config{
		Name: t.Name, Path: t.Path, Builtin: t.Builtin, SHA256: t.SHA256, Install: t.Install, NoMTLS: t.NoMTLS, Unconfined: t.Free, UserNamespace: t.Apart,
		Settings: t.SettingMap(), Dir: t.Dir, Env: t.Environment(),
		Restart: restarts(s.Routes.Job, s.Routes.Site, t.Name),
		Offers:  map[string]any{transports.SilenceName: routes.SilenceLimit(s.Routes.Job).Seconds()},
		RunDir:  s.Dir,
		Logger:  report.QuietLogger{Logger: s.Log},

		// On a busy machine, users raise the limit for the start: plugins get part of it.
		StartTimeout: max(host.DefaultStartTimeout, s.Routes.Job.Limits.Start/2),
	})
	if err != nil {
		return nil, err
	}
	s.Log.Debug("transport started", "transport", t.Name, "pid", p.Status().PID)
	return &routes.Transport{Transport: p.Transport(), Name: t.Name, Plugin: p}, nil
}

// StopTransports ends all plugins. Links that they made are not touched.
func (s *Site) StopTransports() {
	var wg sync.WaitGroup
	for _, t := range s.Routes.Running() {
		wg.Go(func() {
			if err := t.Plugin.Close(); err != nil {
				s.Log.Warn("transport did not end in order", "transport", t.Name, "error", err)
			}
		})
	}
	wg.Wait()
}
