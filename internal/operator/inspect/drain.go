package inspect

import (
	"context"
	"fmt"
	"strings"

	"github.com/openimpi/impi/internal/connmgr/direct"
	"github.com/openimpi/impi/internal/links"
)

// drain makes new links of this node avoid plugins, or use them again, and tells what still uses
// them.
func drain(ctx context.Context, c *Control, r links.Request) (*links.Drain, error) {
	rt := c.Site.Routes
	var names, builtin []string
	for _, t := range rt.Transports {
		x, _ := rt.Site.Transport(t.Name)
		switch {
		case r.Transport == t.Name, r.Transport == "" && (!x.Builtin || r.Op == links.OpUndrain && rt.Drained.Has(t.Name)):
			names = append(names, t.Name)
		case x.Builtin:
			builtin = append(builtin, t.Name)
		}
	}
	switch {
	case len(names) == 0 && r.Transport != "":
		return nil, fmt.Errorf("%w: no plugin of transport %q runs at site %s", links.ErrRequest, r.Transport, rt.Site.Name)
	case len(names) == 0 && r.Op == links.OpUndrain:
		return nil, fmt.Errorf("%w: no transport is drained here", links.ErrRequest)
	case len(names) == 0:
		return nil, fmt.Errorf("%w: no plugin of others runs at site %s, only transports that come with impi, which are replaced with impi-node itself; to have new links do without one of these all the same, name one by -transport: %s",
			links.ErrRequest, rt.Site.Name, strings.Join(builtin, ", "))
	}
	a := &links.Drain{Site: rt.Site.Name}
	for _, name := range names {
		if r.Op != links.OpDrained && rt.Drained.Has(name) != (r.Op == links.OpDrain) {
			rt.Drained.Set(name, r.Op == links.OpDrain)
			c.Site.Log.Info(map[bool]string{true: "new links do without a transport", false: "new links use a transport again"}[r.Op == links.OpDrain], "transport", name)
		}
		s := rt.Transport(name).Plugin.Status()
		x := links.Draining{Transport: name, PID: s.PID, Version: s.Version, Drained: rt.Drained.Has(name), Channels: channelsBy(ctx, c, name)}
		if x.Drained {
			u := c.Direct.MoveOffPlugin(name)
			x.Moving, x.Waiting, x.Fixed = u.Moving, u.Waiting, u.Fixed
		}
		resumable, others := c.Worlds.CountLinks(name, direct.PassesPlugin)
		x.ToWorlds = resumable + others
		a.Transports = append(a.Transports, x)
	}
	if r.Op == links.OpUndrain {
		c.Direct.ForgetMoves()
	}
	return a, nil
}

func channelsBy(ctx context.Context, c *Control, transport string) (n int) {
	for i := range c.Hosts {
		_, channels, _ := c.describeHost(ctx, i)
		for _, x := range channels {
			if !x.Ended && x.Transport == transport && direct.PassesPlugin(x.Plane) {
				n++
			}
		}
	}
	return n
}

// throughPlugin counts the links of procs whose bytes pass through a transport's plugin, in the job
// and to other worlds: resumable ones, and others.
func throughPlugin(c *Control, transport string) (resumable, others int) {
	away, fixed := c.Worlds.CountLinks(transport, direct.PassesPlugin)
	resumable, others = c.Direct.CountThroughPlugin(transport)
	return resumable + away, others + fixed
}
