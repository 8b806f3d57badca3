// Package chaos disturbs links on purpose: delay, jitter, little bandwidth, stalls
// and cuts, by a seed. It wraps any transport.
//
// It is for tests and demonstrations. A job that matters has no use for it.
package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/transports"
	"github.com/openimpi/impi/transports/conn"
)

// New makes a transport that disturbs the links of one of several; the setting
// "around" names it, and the first is the default. warn is given a sentence for
// the operator each time that the transport is configured.
func New(warn func(text string), around transports.Transport, others ...transports.Transport) transports.Transport {
	c := &chaos{warn: warn, known: append([]transports.Transport{around}, others...)}
	c.now.of = around
	c.now.f, _ = faultsOf(transports.Defaults(c.Schema()))
	return c
}

type chaos struct {
	warn  func(string)
	known []transports.Transport

	mu    sync.Mutex
	now   choice
	links uint64 // made so far
	cuts  int    // links cut so far
}

// choice is what was configured.
type choice struct {
	of transports.Transport
	f  Faults
}

func (c *chaos) chosen() choice {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Info names this transport, whatever it is around.
func (c *chaos) Info() transports.Info {
	i := c.known[0].Info()
	return transports.Info{Name: "chaos", Version: i.Version, Vendor: i.Vendor}
}

// Capabilities are those of the transport inside, but that its bytes pass through
// here.
func (c *chaos) Capabilities() transports.Capabilities {
	all := c.chosen().of.Capabilities()
	all.DataPlanes = []transports.DataPlane{transports.PlaneRing, transports.PlaneStream, transports.PlaneGRPC}
	return all
}

// Schema has the faults, and which transport they are for.
func (c *chaos) Schema() []transports.Setting { return schema(c.names()) }

func (c *chaos) names() (names []string) {
	for _, t := range c.known {
		names = append(names, t.Info().Name)
	}
	return names
}

// Configure chooses the transport and its faults for links made from now on.
func (c *chaos) Configure(settings map[string]any) error {
	f, err := faultsOf(settings)
	name, _ := settings["around"].(string)
	i := slices.Index(c.names(), name)
	if i < 0 {
		return errors.Join(err, &transports.SettingError{
			Name: "around", Problem: fmt.Sprintf("there is no transport %q in this plugin", name),
			Remedy: "choose one of " + strings.Join(c.names(), ", "),
		})
	}
	r := &reader{settings: settings}
	inner := r.inner(c.known[i])
	if err := errors.Join(append(r.faults, err)...); err != nil {
		return err
	}
	if err := c.known[i].Configure(inner); err != nil {
		return err
	}
	c.mu.Lock()
	c.now = choice{c.known[i], f}
	c.mu.Unlock()
	c.warn(fmt.Sprintf("links over %s are disturbed on purpose (%v): for tests and demonstrations only", name, f))
	return nil
}

// Listen opens the inner transport's listener.
func (c *chaos) Listen(ctx context.Context, at transports.ListenSpec) (transports.Listener, error) {
	now := c.chosen()
	ln, err := now.of.Listen(ctx, at)
	if err != nil {
		return nil, ours(err)
	}
	return &listener{Listener: ln, c: c, now: now}, nil
}

// Dial makes a link that is disturbed.
func (c *chaos) Dial(ctx context.Context, to transports.DialSpec) (link.Link, error) {
	now := c.chosen()
	l, err := now.of.Dial(ctx, to)
	if err != nil {
		return nil, ours(err)
	}
	return c.disturb(l, now, "dial", to.Address)
}

// ours makes an error of the inner transport one of this transport.
func ours(err error) error {
	var te *transports.Error
	if !errors.As(err, &te) {
		return err
	}
	e := *te
	e.Transport, e.Reason = "chaos", fmt.Sprintf("%s: %s", te.Transport, te.Reason)
	return &e
}

func (c *chaos) disturb(l link.Link, now choice, op, address string) (link.Link, error) {
	c.mu.Lock()
	number := c.links
	c.links++
	c.mu.Unlock()
	inner, err := connOf(l)
	if err != nil {
		return nil, &transports.Error{Transport: "chaos", Op: op, Address: address, Code: transports.CodeInternal, Reason: err.Error(), Cause: err}
	}
	return conn.New(disturb(inner, now.f, number, func() bool { return c.mayCut(now.f.Cuts) })), nil
}

// mayCut takes one of the cuts that there are.
func (c *chaos) mayCut(most int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if most > 0 && c.cuts >= most {
		return false
	}
	c.cuts++
	return true
}

type listener struct {
	transports.Listener
	c   *chaos
	now choice
}

// Accept waits for a link, and disturbs it.
func (l *listener) Accept(ctx context.Context) (link.Link, error) {
	made, err := l.Listener.Accept(ctx)
	if err != nil {
		return nil, ours(err)
	}
	return l.c.disturb(made, l.now, "accept", l.Address())
}
