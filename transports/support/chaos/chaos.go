// Package chaos disturbs links on purpose: delay, jitter, low bandwidth, stalls and cuts,
// from a seed. It wraps any transport. It is for tests and demonstrations (docs/chaos.md).
package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
)

// Options describe the transport to make.
type Options struct {
	// Name is the transport's name in the config; "" means "chaos". If the name is "chaos-"
	// and another name, that is the default of the setting "around"; otherwise the first of
	// Around is.
	Name string

	// Around are the transports whose links can be disturbed; there must be at least one.
	// The first is the default.
	Around []transports.Transport

	// Warn, unless nil, is called with a sentence for the operator each time the transport is
	// configured.
	Warn func(text string)
}

// New makes a transport that disturbs the links of another one, which the setting "around"
// names. It disturbs nothing before Configure.
func New(o Options) *Transport {
	t := &Transport{name: o.Name, warn: o.Warn, known: o.Around, live: map[*disturbed]struct{}{}}
	t.name = cmp.Or(t.name, "chaos")
	if t.warn == nil {
		t.warn = func(string) {}
	}
	around, said := strings.CutPrefix(t.name, "chaos-")
	if t.around = around; !said {
		t.around = t.names()[0]
	}
	t.now.of = t.known[max(slices.Index(t.names(), t.around), 0)]
	t.now.f, _ = faultsOf(transports.Defaults(t.Schema())) // the defaults are valid
	return t
}

// Transport disturbs links.
type Transport struct {
	name   string
	warn   func(string)
	known  []transports.Transport
	around string // the default of the setting: one of known, or a name that Configure refuses

	mu    sync.Mutex
	now   choice
	links uint64 // links made so far
	cuts  int    // links cut so far
	live  map[*disturbed]struct{}
}

type choice struct {
	of transports.Transport
	f  Faults
}

func (t *Transport) chosen() choice {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now
}

// Info names this transport, whichever transport it wraps.
func (t *Transport) Info() transports.Info {
	return transports.Info{Name: t.name, Version: "1", Vendor: "openimpi"}
}

// Capabilities returns the capabilities of the wrapped transport, except that bytes pass through
// this process. It makes no channels to foreign hosts: a site that runs another MPI did not ask for
// faults.
func (t *Transport) Capabilities() transports.Capabilities {
	all := t.chosen().of.Capabilities()
	all.DataPlanes = []transports.DataPlane{transports.PlaneRing, transports.PlaneStream, transports.PlaneGRPC}
	all.Features = slices.DeleteFunc(slices.Clone(all.Features), func(f transports.Feature) bool {
		return f == transports.FeatureIPChannel || f == transports.FeatureIPChannelIfAsked
	})
	return all
}

// Schema returns the settings of the faults, and the setting that chooses the transport.
func (t *Transport) Schema() []transports.Setting { return schema(t.names(), t.around) }

func (t *Transport) names() (names []string) {
	for _, x := range t.known {
		names = append(names, x.Info().Name)
	}
	return names
}

// Configure chooses the transport and the faults of links that are made after it.
func (t *Transport) Configure(settings map[string]any) error {
	f, err := faultsOf(settings)
	name, _ := settings["around"].(string)
	i := slices.Index(t.names(), name)
	if i < 0 {
		return errors.Join(err, &transports.SettingError{
			Name: "around", Problem: fmt.Sprintf("there is no transport %q in this plugin", name),
			Remedy: "choose one of " + strings.Join(t.names(), ", "),
		})
	}
	r := &reader{settings: settings}
	inner := r.inner(t.known[i])
	if err := errors.Join(append(r.faults, err)...); err != nil {
		return err
	}
	if err := t.known[i].Configure(inner); err != nil {
		return err
	}
	t.mu.Lock()
	t.now = choice{t.known[i], f}
	t.mu.Unlock()
	t.warn(fmt.Sprintf("links over %s are disturbed on purpose (%v): for tests and demonstrations only", name, f))
	return nil
}

// Listen opens the inner transport's listener.
func (t *Transport) Listen(ctx context.Context, at transports.ListenSpec) (transports.Listener, error) {
	now := t.chosen()
	ln, err := now.of.Listen(ctx, at)
	if err != nil {
		return nil, t.ours(err)
	}
	return &listener{Listener: ln, t: t, now: now}, nil
}

// Dial dials by the inner transport, and disturbs the link that it gets, as Configure has set it.
func (t *Transport) Dial(ctx context.Context, to transports.DialSpec) (link.Link, error) {
	now := t.chosen()
	l, err := now.of.Dial(ctx, to)
	if err != nil {
		return nil, t.ours(err)
	}
	return t.disturb(l, now, "dial", to.Address)
}

func (t *Transport) ours(err error) error {
	var te *transports.Error
	if !errors.As(err, &te) {
		return err
	}
	e := *te
	e.Transport, e.Reason = t.name, fmt.Sprintf("%s: %s", te.Transport, te.Reason)
	return &e
}

func (t *Transport) disturb(l link.Link, now choice, op, address string) (link.Link, error) {
	inner, err := connOf(l)
	if err != nil {
		return nil, &transports.Error{Transport: t.name, Op: op, Address: address, Code: transports.CodeInternal, Reason: err.Error(), Cause: err}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	d := disturb(inner, now.f, t.links, func() bool { return t.mayCut(now.f.Cuts) })
	t.links++
	t.live[d] = struct{}{}
	go t.forget(d)
	return conn.New(d), nil
}

// mayCut reports whether a link may be cut, and if so counts it as cut.
func (t *Transport) mayCut(most int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if most > 0 && t.cuts >= most {
		return false
	}
	t.cuts++
	return true
}

type listener struct {
	transports.Listener
	t   *Transport
	now choice
}

// Accept waits for a link, and disturbs it.
func (l *listener) Accept(ctx context.Context) (link.Link, error) {
	made, err := l.Listener.Accept(ctx)
	if err != nil {
		return nil, l.t.ours(err)
	}
	return l.t.disturb(made, l.now, "accept", l.Address())
}
