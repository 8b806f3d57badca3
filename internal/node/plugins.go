package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/transports"
)

// transport is a transport that runs, with its plugin behind it.
type transport struct {
	transports.Transport
	name   string
	plugin *host.Plugin
}

// startTransports starts the plugins of all transports that a route of the site
// names, and one that can make IMPI channels.
func (n *node) startTransports(ctx context.Context) error {
	if n.opt.share != nil {
		n.borrowTransports()
		n.closeRoutes()
		return nil
	}
	names := n.wantedTransports()
	started := make([]*transport, len(names))
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() { started[i], errs[i] = n.startTransport(ctx, name) })
	}
	wg.Wait()
	for _, t := range started {
		if t != nil {
			n.transports = append(n.transports, t)
		}
	}
	errs = append(errs, n.checkPins())
	if err := errors.Join(errs...); err != nil {
		return err
	}
	n.closeRoutes()
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

func (n *node) startTransport(ctx context.Context, name string) (*transport, error) {
	t, ok := n.opt.Site.Transport(name)
	if !ok {
		return nil, fmt.Errorf("site %s has no transport %q", n.opt.Site.Name, name)
	}
	return n.launchTransport(ctx, t)
}

func (n *node) launchTransport(ctx context.Context, t config.Transport) (*transport, error) {
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
	return &transport{Transport: p.Transport(), name: t.Name, plugin: p}, nil
}

// transport gives a running transport, or nil.
func (n *node) transport(name string) *transport {
	i := slices.IndexFunc(n.transports, func(t *transport) bool { return t.name == name })
	if i < 0 {
		return nil
	}
	return n.transports[i]
}

// stopTransports ends all plugins. Links that they made are not touched.
func (n *node) stopTransports() {
	if n.opt.share != nil {
		return // they are the site's
	}
	var wg sync.WaitGroup
	for _, t := range n.running() {
		wg.Go(func() {
			if err := t.plugin.Close(); err != nil {
				n.log.Warn("transport did not end in order", "transport", t.name, "error", err)
			}
		})
	}
	wg.Wait()
}
