package node

import (
	"context"
	"fmt"
	"slices"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/transports"
)

// chooseChannels finds the transport for the channels between hosts. Foreign
// hosts know only TCP, so it has to be one whose listeners are "ip:port".
func (n *node) chooseChannels(ctx context.Context) error {
	for _, t := range n.routes.Transports {
		if t.Capabilities().Has(transports.FeatureIPChannel) {
			n.routes.Channels = t
			return nil
		}
	}
	for _, c := range n.candidatesForChannels() {
		t, err := n.startTransport(ctx, c.Name)
		if err != nil {
			return err
		}
		n.routes.Transports = append(n.routes.Transports, t)
		if t.Capabilities().Has(transports.FeatureIPChannel) {
			n.routes.Channels = t
			return nil
		}
	}
	return n.plainChannels(ctx)
}

// candidatesForChannels are the transports that no route wanted, first the one
// that needs no trial.
func (n *node) candidatesForChannels() (list []config.Transport) {
	for _, c := range n.opt.Site.Transports {
		switch {
		case n.routes.Transport(c.Name) != nil:
		case c.Known.Channels:
			list = slices.Insert(list, 0, c)
		default:
			list = append(list, c)
		}
	}
	return list
}

// plainChannels starts the built-in transport for channels alone, beside one that
// encrypts its links.
func (n *node) plainChannels(ctx context.Context) error {
	i := slices.IndexFunc(n.opt.Site.Transports, func(t config.Transport) bool { return t.Builtin && t.Known.Channels })
	if i < 0 {
		var names []string
		for _, x := range n.opt.Job.Builtins {
			if x.Channels {
				names = append(names, x.Name)
			}
		}
		return fmt.Errorf("site %s has no transport for channels to other hosts: keep the built-in %q", n.opt.Site.Name, names)
	}
	c := n.opt.Site.Transports[i]
	c.Settings = slices.DeleteFunc(slices.Clone(c.Settings), func(s config.Setting) bool { return slices.Contains(c.Known.NotForChannels, s.Name) })
	t, err := n.launchTransport(ctx, c)
	if err != nil {
		return err
	}
	n.routes.Channels = t
	n.log.Debug("channels between hosts are plain TCP; direct links are not")
	return nil
}
