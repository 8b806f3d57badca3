package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/identity"
)

const (
	name    = "websocket"
	version = "1.0.0"
)

type transport struct {
	mu  sync.Mutex
	set settings
}

type settings struct {
	path      string
	proxy     string
	advertise string
	token     string
	names     bool
	timeout   time.Duration
	id        *identity.Identity // nil: links are not encrypted, or by a gateway
}

func newTransport() *transport {
	t := &transport{}
	_ = t.Configure(transports.Defaults(t.Schema())) // the defaults are right
	return t
}

func (*transport) Info() transports.Info {
	return transports.Info{Name: name, Version: version, Vendor: "the impi examples"}
}

// Capabilities returns the capabilities of links inside this process, which passes their bytes on.
func (t *transport) Capabilities() transports.Capabilities {
	c := transports.Capabilities{
		DataPlanes: []transports.DataPlane{transports.PlaneRing, transports.PlaneStream, transports.PlaneGRPC},
		Reach:      transports.ReachNetwork,
	}
	if t.settings().id != nil {
		c.Features = []transports.Feature{transports.FeatureEncrypted, transports.FeaturePeerAuth}
	}
	return c
}

// Health returns an error about a certificate that is about to expire.
func (t *transport) Health() error { return t.settings().id.Health() }

// Schema lists the settings.
func (*transport) Schema() []transports.Setting {
	return append(identity.Settings(false), []transports.Setting{
		{Name: "path", Type: transports.TypeString, Default: "/impi", Doc: "path of the URL at which links are taken"},
		{Name: "proxy", Type: transports.TypeString, Default: "environment", Doc: `HTTP proxy to dial through, as "http://user:password@192.0.2.1:3128"; "environment" is what HTTP_PROXY and NO_PROXY say; "" is none`},
		{Name: "advertise", Type: transports.TypeString, Default: "", Doc: `URL that peers are to dial instead of this host's own, such as a gateway's "wss://203.0.113.1/impi"`},
		{Name: "token", Type: transports.TypeString, Default: "", Doc: "secret that both sides must have the same of; it is sent in the clear unless the URL is wss"},
		{Name: "names", Type: transports.TypeBool, Default: false, Doc: "dial URLs with host names too, which the resolver is asked about, and not numeric addresses only"},
		{Name: "timeout", Type: transports.TypeNumber, Default: 10.0, Doc: "seconds that a connection and its handshake may take"},
	}...)
}

// Configure checks the settings and accepts all of them, or none.
func (t *transport) Configure(given map[string]any) error {
	s := settings{
		path: given["path"].(string), proxy: given["proxy"].(string), advertise: given["advertise"].(string),
		token: given["token"].(string), names: given["names"].(bool),
		timeout: time.Duration(given["timeout"].(float64) * float64(time.Second)),
	}
	var faults []error
	fault := func(name, problem, remedy string) {
		faults = append(faults, &transports.SettingError{Name: name, Problem: problem, Remedy: remedy})
	}
	if !strings.HasPrefix(s.path, "/") || strings.ContainsAny(s.path, " ?#%") {
		fault("path", fmt.Sprintf("%q is no plain path", s.path), `write one like "/impi"`)
	}
	if s.proxy != "" && s.proxy != "environment" {
		if u, err := url.Parse(s.proxy); err != nil || u.Scheme != "http" || u.Port() == "" {
			fault("proxy", "is no URL of an HTTP proxy", `write one like "http://192.0.2.1:3128", "environment" or ""`)
		}
	}
	if s.advertise != "" {
		if _, err := parseAddress(s.advertise, true); err != nil {
			fault("advertise", err.Error(), `write a URL like "wss://203.0.113.1/impi"`)
		}
	}
	if strings.ContainsAny(s.token, "\r\n") {
		fault("token", "has a line end in it", "write one line")
	}
	if s.timeout <= 0 {
		fault("timeout", "is not positive", "write a number of seconds, such as 10")
	}
	if given["cert"] != "" || given["key"] != "" || given["ca"] != "" {
		id, err := identity.Load(given)
		if s.id = id; err != nil {
			faults = append(faults, err)
		}
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.set = s
	return nil
}

func (t *transport) settings() settings {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.set
}

// Listen opens an HTTP server.
func (t *transport) Listen(ctx context.Context, at transports.ListenSpec) (transports.Listener, error) {
	return listen(ctx, t.settings(), at)
}

// Dial makes a WebSocket, through the proxy if there is one.
func (t *transport) Dial(ctx context.Context, to transports.DialSpec) (link.Link, error) {
	return dial(ctx, t.settings(), to)
}
