// Package unix is the transport over Unix stream sockets: endpoints on one
// machine, run by one user. Each side asks the kernel who the other one is.
package unix

import (
	"context"
	"errors"
	"net"
	"sync/atomic"

	sys "golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

const name = "unix"

// Transport makes links over Unix sockets. Its zero value is not usable; see New.
type Transport struct {
	settings atomic.Pointer[settings]
}

// New makes a transport with the default settings.
func New() *Transport {
	t := &Transport{}
	if err := t.Configure(transports.Defaults(schema)); err != nil {
		panic("unix: its own defaults: " + err.Error())
	}
	return t
}

// Info implements transports.Transport.
func (t *Transport) Info() transports.Info {
	return transports.Info{Name: name, Version: "1", Vendor: "openimpi"}
}

// Capabilities returns the capabilities of a kernel socket within one machine, whose other end the
// kernel identifies.
func (t *Transport) Capabilities() transports.Capabilities {
	return transports.Capabilities{
		DataPlanes: []transports.DataPlane{transports.PlaneFD, transports.PlaneStream},
		Features:   []transports.Feature{transports.FeaturePeerAuth},
		Reach:      transports.ReachMachine,
	}
}

// Dial connects to a listener's socket and checks whose process it is.
func (t *Transport) Dial(ctx context.Context, to transports.DialSpec) (link.Link, error) {
	at, err := parsePlace(to.Address)
	if err != nil {
		return nil, socket.BadAddress(name, "dial", to.Address, err.Error())
	}
	short, release, err := at.reachable()
	if err != nil {
		return nil, socket.Failure(name, "dial", to.Address, err)
	}
	defer release()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", short)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, socket.Failure(name, "dial", to.Address, err)
	}
	return t.settings.Load().link("dial", to.Address, conn.(*net.UnixConn))
}

func (s *settings) link(op, address string, conn socket.Conn) (link.Link, error) {
	l, err := socket.FromConn(conn)
	if err != nil {
		return nil, socket.Failure(name, op, address, err)
	}
	if err := s.prepare(l.Handle()); err != nil {
		l.Close()
		if refused, ok := errors.AsType[*otherUserError](err); ok {
			return nil, &transports.Error{
				Transport: name, Op: op, Address: address,
				Code: transports.CodeAuth, Retryable: op == "accept", Reason: refused.Error(),
			}
		}
		return nil, socket.Failure(name, op, address, err)
	}
	return l, nil
}

// prepare checks the peer of a socket and sets its buffer. Linux charges the
// bytes under way to the sender alone.
func (s *settings) prepare(fd int) error {
	c, err := socket.Credentials(fd)
	if err != nil {
		return err
	}
	if err := admit(int(c.Uid), sys.Geteuid(), int(c.Pid)); err != nil {
		return err
	}
	return socket.SetBuffers(fd, s.send, 0)
}
