package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/node/routes"
	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/transports"
)

// startTransports starts the plugins of all transports that a route of the site
// names, and one that can make IMPI channels.
func (n *node) startTransports(ctx context.Context) error {
	if n.opt.share != nil {
		n.borrowTransports()
		n.routes.CloseRoutes()
		return nil
	}
	names := n.wantedTransports()
	started := make([]*routes.Transport, len(names))
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() { started[i], errs[i] = n.startTransport(ctx, name) })
	}
	wg.Wait()
	for _, t := range started {
		if t != nil {
			n.routes.Transports = append(n.routes.Transports, t)
		}
	}
	errs = append(errs, n.routes.CheckPins())
	if err := errors.Join(errs...); err != nil {
		return err
	}
	n.routes.CloseRoutes()
	return n.chooseChannels(ctx)
}

// wantedTransports lists the transports of all routes and the built-in ones.
func (n *node) wantedTransports() []string {
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, r := range append([]config.Route{n.opt.Site.RouteTo("*")}, n.opt.Site.Routes...) {
		for _, name := range r.Prefer {
			add(name)
		}
	}
	return names
}

func (n *node) startTransport(ctx context.Context, name string) (*routes.Transport, error) {
	t, ok := n.opt.Site.Transport(name)
	if !ok {
		return nil, fmt.Errorf("site %s has no transport %q", n.opt.Site.Name, name)
	}
	return n.launchTransport(ctx, t)
}

func (n *node) launchTransport(ctx context.Context, t config.Transport) (*routes.Transport, error) {
	p, err := host.Start(ctx, host.Config{
		Name: t.Name, Path: t.Path, Builtin: t.Builtin, SHA256: t.SHA256, NoMTLS: t.NoMTLS,
		Settings: t.SettingMap(), Dir: t.Dir,
		Offers: map[string]any{transports.SilenceName: n.silence().Seconds()},
		RunDir: n.dir.Path,
		Logger: quiet{n.log},

		// Who gives a job more time to start, on a busy machine, gives it to plugins too.
		StartTimeout: max(host.DefaultStartTimeout, n.opt.Job.Limits.Start/2),
	})
	if err != nil {
		return nil, err
	}
	n.log.Debug("transport started", "transport", t.Name, "pid", p.Status().PID)
	return &routes.Transport{Transport: p.Transport(), Name: t.Name, Plugin: p}, nil
}

// stopTransports ends all plugins. Links that they made are not touched.
func (n *node) stopTransports() {
	if n.opt.share != nil {
		return // they are the site's
	}
	var wg sync.WaitGroup
	for _, t := range n.routes.Running() {
		wg.Go(func() {
			if err := t.Plugin.Close(); err != nil {
				n.log.Warn("transport did not end in order", "transport", t.Name, "error", err)
			}
		})
	}
	wg.Wait()
}
