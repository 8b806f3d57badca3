package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/openimpi/impi/plugins/sdk"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	sdkfabric "github.com/openimpi/impi/plugins/sdk/transports/fabric"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

const (
	name    = "ofi"
	version = "1.1.0"
)

var (
	errClosedThere = errors.New("nobody listens there any more")
	errFull        = errors.New("there are too many links")
	errMemory      = errors.New("there is no memory for messages")
)

type transport struct {
	mu    sync.Mutex
	set   settings
	offer offer
	nodes map[string]*node // nodes that dial, by local address
}

type settings struct {
	provider, domain, netif string
	window                  uint64
	fragment                int
	timeout, silence        time.Duration
	rdma                    bool  // links are of messages
	registered              int64 // bytes that an endpoint keeps registered
}

// patience is how long a peer may accept no bytes before its link is given up.
func (s settings) patience() time.Duration {
	if s.silence > 0 {
		return s.silence
	}
	return 30 * time.Second
}

func newTransport() *transport {
	t := &transport{nodes: map[string]*node{}}
	t.set = settings{provider: "tcp", window: 1 << 20, fragment: defaultFragment, registered: sdkfabric.DefaultBudget, timeout: 10 * time.Second, silence: 10 * time.Second}
	return t
}

func (*transport) Info() transports.Info {
	return transports.Info{Name: name, Version: version, Vendor: "the impi examples"}
}

// Capabilities returns the capabilities of links inside this process, which passes their bytes on.
func (t *transport) Capabilities() transports.Capabilities {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := transports.Capabilities{
		DataPlanes: []transports.DataPlane{transports.PlaneRing, transports.PlaneStream, transports.PlaneGRPC},
		Reach:      transports.ReachNetwork,
	}
	if t.set.rdma {
		c.DataPlanes = sdkfabric.Planes()
	}
	if strings.HasPrefix(t.set.provider, "shm") {
		c.Reach = transports.ReachMachine
	}
	return c
}

const (
	defaultFragment = 16000
	// onePacket is what a datagram of ofi_rxd carries. It makes several of a longer message, and in
	// version 1.17 some of them were lost, or changed, on busy machines.
	onePacket = 1200
	// oneInject is what shm copies into the peer's memory at once. Of a longer message it keeps the
	// sender's memory until the peer has answered, and takes the answers in the order of the messages:
	// a peer that dies would keep what all others have answered.
	oneInject = 4096 - headSize
)

// Schema lists the settings.
func (*transport) Schema() []transports.Setting {
	return []transports.Setting{
		{Name: "provider", Type: transports.TypeString, Default: "tcp", Doc: `libfabric's provider, as fi_info names it: "tcp", "udp;ofi_rxd", "shm", "verbs", "psm2", "efa", "cxi"; both sides need the same`},
		{Name: "domain", Type: transports.TypeString, Default: "", Doc: `libfabric's domain, such as "mlx5_0"; empty: the provider's first one that reaches the address`},
		{Name: "interface", Type: transports.TypeString, Default: "", Doc: `network interface whose first address is used instead of the host's own, such as "ib0"; for providers with IP addresses`},
		{Name: "window", Type: transports.TypeNumber, Default: float64(1 << 20), Doc: "bytes that a link takes which nobody has read, from 65536 to 67108864"},
		{Name: "fragment", Type: transports.TypeNumber, Default: float64(defaultFragment), Doc: "bytes of data in one message, from 1024 to 65000; the same at both sides"},
		{Name: "rdma", Type: transports.TypeBool, Default: false, Doc: "links carry messages, and long ones are read by the peer from memory that procs lend: data planes rdma and ring. Otherwise ring, stream and grpc. Links between sites that differ are as without it"},
		{Name: "registered", Type: transports.TypeNumber, Default: float64(sdkfabric.DefaultBudget), Doc: "bytes of lent memory that each endpoint keeps registered, from 4096"},
		{Name: "timeout", Type: transports.TypeNumber, Default: 10.0, Doc: "seconds that a dial may take"},
		{Name: transports.SilenceName, Type: transports.TypeNumber, Default: 10.0, Doc: "seconds after which a peer of which nothing is heard is lost; 0: never"},
		{Name: "env", Type: transports.TypeStrings, Default: []string{}, Doc: `variables for libfabric, as "FI_LOG_LEVEL=warn"; their names begin with FI_`},
	}
}

var (
	providerSyntax = regexp.MustCompile(`^[a-z][a-z0-9_;]{0,63}$`)
	nameSyntax     = regexp.MustCompile(`^[A-Za-z0-9_.:-]{0,63}$`)
	envSyntax      = regexp.MustCompile(`^FI_[A-Z0-9_]+=[ -~]*$`)
)

// Configure checks the settings and accepts all of them, or none.
func (t *transport) Configure(given map[string]any) error {
	number := func(name string) float64 { return given[name].(float64) }
	s := settings{
		provider: given["provider"].(string), domain: given["domain"].(string), netif: given["interface"].(string),
		timeout: time.Duration(number("timeout") * float64(time.Second)), silence: time.Duration(number(transports.SilenceName) * float64(time.Second)),
	}
	var faults []error
	fault := func(name, problem, remedy string) {
		faults = append(faults, &transports.SettingError{Name: name, Problem: problem, Remedy: remedy})
	}
	whole := func(name string, least, most float64) int {
		x := number(name)
		if !(x >= least && x <= most) || x != float64(int(x)) {
			fault(name, fmt.Sprintf("%v is out of range", x), fmt.Sprintf("write a whole number from %.0f to %.0f", least, most))
			return int(least)
		}
		return int(x)
	}
	s.window, s.fragment = uint64(whole("window", leastWindow, mostWindow)), whole("fragment", 1024, 65000)
	s.rdma = given["rdma"].(bool)
	s.registered = int64(whole("registered", 4096, 1<<50))
	if !(number("timeout") > 0 && number("timeout") <= 3600) {
		fault("timeout", "is no time from 0 to 3600 seconds", "write a number of seconds, such as 10")
	}
	if x := number(transports.SilenceName); x != 0 && !(x >= 1 && x <= 86400) {
		fault(transports.SilenceName, fmt.Sprintf("%v is out of range", x), "write seconds from 1 to 86400, or 0 for never")
	}
	if !providerSyntax.MatchString(s.provider) {
		fault("provider", shown(s.provider)+" is no provider's name", `write one that "fi_info -l" lists, such as "tcp"`)
	}
	if !nameSyntax.MatchString(s.domain) {
		fault("domain", shown(s.domain)+" is no domain's name", `write one that "fi_info" lists, such as "eth0"`)
	}
	if s.netif != "" {
		if _, err := interfaceAddress(s.netif); err != nil {
			fault("interface", err.Error(), `write one that "ip addr" lists, or leave it out`)
		}
	}
	env := given["env"].([]string)
	for _, e := range env {
		if !envSyntax.MatchString(e) {
			fault("env", shown(e)+" is no variable of libfabric", `write "FI_NAME=value"`)
		}
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	for _, e := range env {
		k, v, _ := strings.Cut(e, "=")
		if err := os.Setenv(k, v); err != nil { // C's too, with cgo
			return &transports.SettingError{Name: "env", Problem: err.Error(), Remedy: "leave it out"}
		}
	}
	var found offer
	if err := query(s.provider, s.domain, "", "", func(i info) error { found = offerOf(i); return nil }); err != nil {
		return noProvider(s, err)
	}
	switch {
	case strings.Contains(found.provider, "rxd"):
		s.fragment = min(s.fragment, onePacket)
	case strings.HasPrefix(found.provider, "shm"):
		s.fragment = min(s.fragment, oneInject)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.set != s {
		for _, n := range t.nodes {
			n.stop()
		}
		clear(t.nodes)
	}
	if s.rdma && found.problem != "" && t.offer.problem != found.problem {
		sdk.Logger().Info("long messages are copied, since memory of peers cannot be read", "provider", found.provider, "why", found.problem)
	}
	t.set, t.offer = s, found
	return nil
}

// noProvider returns the error of settings whose provider is not on this machine, with the
// providers that are.
func noProvider(s settings, err error) error {
	what, which := "provider", strconv.Quote(s.provider)
	if s.domain != "" {
		if query(s.provider, "", "", "", func(info) error { return nil }) == nil {
			what, which = "domain", fmt.Sprintf("%q of provider %q", s.domain, s.provider)
		}
	}
	return &transports.SettingError{Name: what,
		Problem: fmt.Sprintf("libfabric has no reliable datagram endpoint for %s on this machine: %v", which, err),
		Remedy: fmt.Sprintf(`load the driver of its hardware and see that "fi_info -p '%s' -t FI_EP_RDM" lists it, or choose one of those that are here: %s`,
			s.provider, strings.Join(providers(), ", "))}
}

func interfaceAddress(netif string) (string, error) {
	i, err := net.InterfaceByName(netif)
	if err != nil {
		return "", fmt.Errorf("%s: there is no such network interface", shown(netif))
	}
	list, err := i.Addrs()
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok && err == nil && !n.IP.IsLinkLocalUnicast() {
			return n.IP.String(), nil
		}
	}
	return "", fmt.Errorf("%s has no address", shown(netif))
}

func (t *transport) config() (settings, offer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.offer.provider != "" {
		return t.set, t.offer, nil
	}
	err := query(t.set.provider, t.set.domain, "", "", func(i info) error { t.offer = offerOf(i); return nil })
	return t.set, t.offer, err
}

func failure(op, address string, code transports.Code, reason string) *transports.Error {
	return &transports.Error{Transport: name, Op: op, Address: address, Code: code, Reason: reason,
		Retryable: slices.Contains([]transports.Code{transports.CodeRefused, transports.CodeUnreachable, transports.CodeTimeout, transports.CodeResource}, code)}
}

func (o offer) ip() bool { return o.format == formatIP4 || o.format == formatIP6 }

// Listen opens an endpoint.
func (t *transport) Listen(ctx context.Context, at transports.ListenSpec) (transports.Listener, error) {
	s, o, err := t.config()
	if err != nil {
		return nil, failure("listen", at.Host, transports.CodeUnsupported, err.Error())
	}
	if ctx.Err() != nil {
		return nil, socket.Failure(name, "listen", at.Host, ctx.Err())
	}
	n, err := s.listens(o, at)
	if err != nil {
		return nil, err
	}
	return &listener{n: n, address: n.f.text(n.f.name), done: make(chan struct{})}, nil
}

func (s settings) listens(o offer, at transports.ListenSpec) (*node, error) {
	for tries := mostPorts; ; tries-- {
		where, err := s.at(o, at)
		if err != nil {
			return nil, err
		}
		n, err := newNode(s, where)
		if err == nil {
			return n, nil
		}
		where.claim.free()
		code, fe := transports.CodeUnreachable, (*fabricError)(nil)
		if errors.As(err, &fe) && (fe.code == errAddr || fe.code == errBusy) {
			code = transports.CodeResource
		}
		if code == transports.CodeResource && at.Port == 0 && o.ip() && tries > 0 {
			continue // another process has this port
		}
		return nil, failure("listen", net.JoinHostPort(where.host, where.service), code, err.Error())
	}
}

func (s settings) at(o offer, at transports.ListenSpec) (endpoint, error) {
	e := endpoint{listens: true}
	switch {
	case o.ip():
		if _, err := netip.ParseAddr(at.Host); err != nil {
			return e, socket.BadAddress(name, "listen", shown(at.Host), "it should be an IP address")
		}
		if e.host = at.Host; s.netif != "" {
			var err error
			if e.host, err = interfaceAddress(s.netif); err != nil {
				return e, failure("listen", at.Host, transports.CodeAddress, err.Error())
			}
		}
		port := at.Port
		if port == 0 {
			port = quietPort()
		}
		if port != 0 {
			e.service = strconv.Itoa(port)
		}
	case o.format == formatStr:
		var err error
		if e.claim, err = claimFor(at); err != nil {
			return e, failure("listen", at.Host, transports.CodeResource, err.Error())
		}
		e.host, e.service = e.claim.name, e.claim.service()
	}
	return e, nil
}

// Dial makes a link over an endpoint that dials to the same network share.
func (t *transport) Dial(ctx context.Context, to transports.DialSpec) (link.Link, error) {
	where, err := parseAddress(to.Address)
	if err != nil {
		return nil, socket.BadAddress(name, "dial", shown(to.Address), err.Error())
	}
	s, o, err := t.config()
	if err != nil {
		return nil, failure("dial", to.Address, transports.CodeUnsupported, err.Error())
	}
	if where.provider != o.provider {
		return nil, socket.BadAddress(name, "dial", shown(to.Address), fmt.Sprintf("it is of provider %.60q, and ours is %q", where.provider, o.provider))
	}
	if o.ip() != where.at.IsValid() {
		return nil, socket.BadAddress(name, "dial", shown(to.Address), "it is no address of an endpoint of "+o.provider)
	}
	if ctx.Err() != nil {
		return nil, socket.Failure(name, "dial", to.Address, ctx.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for {
		n, err := t.dialler(s, o, to.From, where)
		if err != nil {
			return nil, failure("dial", to.Address, transports.CodeUnreachable, err.Error())
		}
		l, again, err := n.dialOnce(ctx, where.blob)
		switch {
		case again && ctx.Err() == nil:
			t.retire(n)
			continue
		case errors.Is(err, errNoAddress):
			return nil, socket.BadAddress(name, "dial", shown(to.Address), "it is no address of an endpoint of "+o.provider)
		case err != nil:
			return nil, dialFailure(ctx, to.Address, err)
		}
		return l.link(), nil
	}
}

var errNoAddress = errors.New("it is no address of an endpoint")

// freshTime is how long a dial waits for a peer that the node knew before.
const freshTime = 2 * time.Second

// dialOnce dials over a node that was entered. again says that another endpoint may reach the peer:
// with shm the peer may have come back with other memory without notice, while this endpoint sends
// into the old memory.
func (n *node) dialOnce(ctx context.Context, blob []byte) (l *stream, again bool, err error) {
	defer n.leave()
	if !n.f.validBlob(blob) {
		return nil, false, errNoAddress
	}
	stale := n.f.shares() && n.knows(blob)
	if stale {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, freshTime)
		defer cancel()
	}
	l, err = n.dial(ctx, blob)
	return l, stale && err != nil && ctx.Err() != nil, err
}

// knows reports whether the provider may have been told of a peer before.
func (n *node) knows(blob []byte) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.peers[string(blob)]
	return p != nil && p.known || n.inserted > len(n.peers)
}

// retire makes further dials not use a node.
func (t *transport) retire(n *node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for host, x := range t.nodes {
		if x == n {
			delete(t.nodes, host)
		}
	}
	n.stop()
}

func dialFailure(ctx context.Context, address string, err error) error {
	switch {
	case errors.Is(err, errClosedThere):
		return failure("dial", address, transports.CodeRefused, err.Error())
	case errors.Is(err, errFull):
		return failure("dial", address, transports.CodeResource, err.Error())
	case ctx.Err() != nil:
		return socket.Failure(name, "dial", address, ctx.Err())
	}
	return failure("dial", address, transports.CodeUnreachable, err.Error())
}

// dialler returns the node for dials from an address, and counts its user.
func (t *transport) dialler(s settings, o offer, from string, to target) (*node, error) {
	host := ""
	if o.ip() {
		switch {
		case s.netif != "":
			var err error
			if host, err = interfaceAddress(s.netif); err != nil {
				return nil, err
			}
		case from != "":
			host = from
		default:
			var err error
			if host, err = source(to.at); err != nil {
				return nil, err
			}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.nodes[host]; n != nil && n.enter() {
		return n, nil
	}
	for range mostNodes {
		n, err := newNode(s, endpoint{host: host})
		if err != nil {
			return nil, err
		}
		if n.enter() {
			t.nodes[host] = n
			return n, nil
		}
	}
	return nil, errEnded
}

// mostNodes is how often a new node is made for a dial. With shm one cannot be used any more if
// another endpoint of this process was closed since (see forget).
const mostNodes = 4

// Close ends the nodes that dial. Links continue.
func (t *transport) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.nodes {
		n.stop()
	}
	clear(t.nodes)
	return nil
}
