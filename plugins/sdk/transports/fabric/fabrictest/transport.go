package fabrictest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/fabric"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// Name is the name of the transport.
const Name = "pretend"

// Transport makes links over Conns.
type Transport struct {
	// Wrap puts a fault into a connection; nil: there is none.
	Wrap func(fabric.Conn) fabric.Conn

	domain *Domain
	cache  atomic.Pointer[fabric.Cache]
	rails  atomic.Int32
}

var schema = []transports.Setting{
	{Name: "rails", Type: transports.TypeNumber, Default: float64(2), Doc: "ways by which memory is read, 1 to 16"},
	{Name: "registered", Type: transports.TypeNumber, Default: float64(fabric.DefaultBudget), Doc: "bytes that are kept registered"},
}

// New makes a transport with the default settings.
func New() (*Transport, error) {
	d, err := NewDomain()
	if err != nil {
		return nil, err
	}
	t := &Transport{domain: d}
	return t, t.Configure(transports.Defaults(schema))
}

// Info implements transports.Transport.
func (t *Transport) Info() transports.Info {
	return transports.Info{Name: Name, Version: "1.0.0", Vendor: "openimpi"}
}

// Capabilities implements transports.Transport.
func (t *Transport) Capabilities() transports.Capabilities {
	return transports.Capabilities{DataPlanes: fabric.Planes(), Reach: transports.ReachMachine}
}

// Schema implements transports.Transport.
func (t *Transport) Schema() []transports.Setting {
	return append([]transports.Setting(nil), schema...)
}

// Configure implements transports.Transport.
func (t *Transport) Configure(given map[string]any) error {
	rails, _ := given["rails"].(float64)
	registered, _ := given["registered"].(float64)
	var errs []error
	if rails != float64(int(rails)) || rails < 1 || rails > 16 {
		errs = append(errs, &transports.SettingError{Name: "rails", Problem: fmt.Sprintf("%v is no number from 1 to 16", rails), Remedy: "write 2"})
	}
	if registered < 1<<12 {
		errs = append(errs, &transports.SettingError{Name: "registered", Problem: fmt.Sprintf("%v bytes are too few", registered), Remedy: "write 4096 or more"})
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	t.rails.Store(int32(rails))
	t.cache.Store(fabric.NewCache(t.domain, int64(registered)))
	return nil
}

// Cache returns the registrations of the transport.
func (t *Transport) Cache() *fabric.Cache { return t.cache.Load() }

// Dial implements transports.Transport.
func (t *Transport) Dial(ctx context.Context, to transports.DialSpec) (link.Link, error) {
	if !filepath.IsAbs(to.Address) {
		return nil, socket.BadAddress(Name, "dial", to.Address, "it should be the path of a socket")
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "unixpacket", to.Address)
	if err != nil {
		return nil, socket.Failure(Name, "dial", to.Address, err)
	}
	l, err := t.link(c)
	if err != nil {
		return nil, socket.Failure(Name, "dial", to.Address, err)
	}
	return l, nil
}

// link makes a link of a connection, which it owns.
func (t *Transport) link(c net.Conn) (link.Link, error) {
	defer c.Close()
	f, err := c.(*net.UnixConn).File()
	if err != nil {
		return nil, fmt.Errorf("the connection's descriptor: %w", err)
	}
	defer f.Close()
	sock, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("the connection's descriptor: %w", err)
	}
	var made fabric.Conn = NewConn(t.domain, sock, int(t.rails.Load()))
	if t.Wrap != nil {
		made = t.Wrap(made)
	}
	return fabric.New(made, t.Cache()), nil
}

// Listen implements transports.Transport.
func (t *Transport) Listen(ctx context.Context, at transports.ListenSpec) (transports.Listener, error) {
	path := filepath.Join(at.Dir, at.Name+".fabric")
	var config net.ListenConfig
	ln, err := config.Listen(ctx, "unixpacket", path)
	if errors.Is(err, unix.EADDRINUSE) && abandoned(path) {
		ln, err = config.Listen(ctx, "unixpacket", path)
	}
	if err != nil {
		return nil, socket.Failure(Name, "listen", path, err)
	}
	return &listener{t, socket.NewAcceptor(ln.(*net.UnixListener)), path}, nil
}

// abandoned removes a socket at which nobody listens any more.
func abandoned(path string) bool {
	c, err := net.Dial("unixpacket", path)
	if err == nil {
		_ = c.Close()
		return false
	}
	return errors.Is(err, unix.ECONNREFUSED) && os.Remove(path) == nil
}

type listener struct {
	t      *Transport
	accept *socket.Acceptor
	path   string
}

// Accept implements transports.Listener.
func (l *listener) Accept(ctx context.Context) (link.Link, error) {
	c, err := l.accept.AcceptConn(ctx)
	if err != nil {
		return nil, socket.Failure(Name, "accept", l.path, err)
	}
	x, err := l.t.link(c)
	if err != nil {
		return nil, socket.Failure(Name, "accept", l.path, err)
	}
	return x, nil
}

// Address implements transports.Listener.
func (l *listener) Address() string { return l.path }

// Close implements transports.Listener.
func (l *listener) Close() error { return l.accept.Close() }
