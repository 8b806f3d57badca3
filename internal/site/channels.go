package site

import (
	"context"
	"fmt"
	"slices"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// chooseChannels finds the transport for the channels between hosts. Foreign
// hosts know only TCP, so it has to be one whose listeners are "ip:port".
func (s *Site) chooseChannels(ctx context.Context) error {
	for _, t := range s.Routes.Transports {
		if makesChannels(t) {
			s.Routes.Channels = t
			return nil
		}
	}
	for _, c := range s.candidatesForChannels() {
		t, err := s.startTransport(ctx, c.Name)
		if err != nil {
			return err
		}
		s.Routes.Transports = append(s.Routes.Transports, t)
		if makesChannels(t) {
			s.Routes.Channels = t
			return nil
		}
	}
	return s.plainChannels(ctx)
}

// makesChannels reports whether a transport's listeners are "ip:port", if they are asked to be.
func makesChannels(t *routes.Transport) bool {
	c := t.Capabilities()
	return c.Has(transports.FeatureIPChannel) || c.Has(transports.FeatureIPChannelIfAsked)
}

// candidatesForChannels returns the transports that no route names, first the one that is known to
// be able to make channels.
func (s *Site) candidatesForChannels() (list []config.Transport) {
	for _, c := range s.Routes.Site.Transports {
		switch {
		case s.Routes.Transport(c.Name) != nil:
		case c.Known.Channels:
			list = slices.Insert(list, 0, c)
		default:
			list = append(list, c)
		}
	}
	return list
}

// plainChannels starts the built-in transport once more, without its certificates and for channels
// alone.
func (s *Site) plainChannels(ctx context.Context) error {
	i := slices.IndexFunc(s.Routes.Site.Transports, func(t config.Transport) bool { return t.Builtin && t.Known.Channels })
	if i < 0 {
		var names []string
		for _, x := range s.Routes.Job.Builtins {
			if x.Channels {
				names = append(names, x.Name)
			}
		}
		return fmt.Errorf("site %s has no transport for channels to other hosts: keep the built-in %q", s.Routes.Site.Name, names)
	}
	c := s.Routes.Site.Transports[i]
	c.Settings = slices.DeleteFunc(slices.Clone(c.Settings), func(s config.Setting) bool { return slices.Contains(c.Known.NotForChannels, s.Name) })
	t, err := s.launchTransport(ctx, c)
	if err != nil {
		return err
	}
	s.Routes.Channels = t
	s.Log.Debug("channels between hosts are plain TCP; direct links are not")
	return nil
}
