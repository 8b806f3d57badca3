// Package shm is the transport through shared memory, for endpoints on one machine that run
// as one user. Each link is a region of two rings (plugins/sdk/support/ring). The dialler
// makes it and hands it over a Unix socket, which afterwards wakes sleepers and shows the
// other side's death. Once the procs have the link, neither another process nor the kernel
// is in its path.
package shm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/ring"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
	sockets "github.com/openimpi/impi/transports/unix"
)

const name = "shm"

// Transport makes links through shared memory. See New.
type Transport struct {
	sockets *sockets.Transport // by which peers find each other
	size    atomic.Int64       // of each ring
	boot    func() (string, error)
}

var schema = []transports.Setting{
	{Name: "ring_size", Type: transports.TypeNumber, Default: float64(ring.DefaultSize), Doc: "bytes that may be under way in one direction of a link, a power of two from 4096 to 2^30; each link takes twice that in memory"},
	{Name: "abstract", Type: transports.TypeBool, Default: false, Doc: "peers meet at names in the kernel's abstract space instead of socket files"},
}

// New makes a transport with the default settings.
func New() *Transport {
	t := &Transport{sockets: sockets.New(), boot: sync.OnceValues(bootID)}
	if err := t.Configure(transports.Defaults(schema)); err != nil {
		panic("shm: its own defaults: " + err.Error())
	}
	return t
}

// Info implements transports.Transport.
func (t *Transport) Info() transports.Info {
	return transports.Info{Name: name, Version: "1.0.0", Vendor: "openimpi"}
}

// Capabilities returns what the links can do.
func (t *Transport) Capabilities() transports.Capabilities {
	return transports.Capabilities{
		DataPlanes: []transports.DataPlane{transports.PlanePeerSHM},
		Features:   []transports.Feature{transports.FeaturePeerAuth},
		Reach:      transports.ReachMachine,
	}
}

// Schema lists the settings.
func (t *Transport) Schema() []transports.Setting {
	return append([]transports.Setting(nil), schema...)
}

// Configure sets the settings of links and listeners that are made after it.
func (t *Transport) Configure(given map[string]any) error {
	size, err := socket.Whole(given, schema[0], 4096, 1<<30)
	if err == nil && size&(size-1) != 0 {
		err = &transports.SettingError{Name: schema[0].Name, Problem: fmt.Sprintf("%d is not a power of two", size), Remedy: fmt.Sprintf("write %d", ring.DefaultSize)}
	}
	if err != nil {
		return err
	}
	settings := transports.Defaults(t.sockets.Schema())
	settings["abstract"] = given["abstract"] == true
	if err := t.sockets.Configure(settings); err != nil {
		return err
	}
	t.size.Store(int64(size))
	return nil
}

// bootID identifies this machine since its last start.
func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("which machine is this: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// Dial makes a region and gives one side of it to the listener at to.
func (t *Transport) Dial(ctx context.Context, to transports.DialSpec) (link.Link, error) {
	boot, err := t.boot()
	if err != nil {
		return nil, failure("dial", to.Address, transports.CodeInternal, err)
	}
	machine, at, ok := strings.Cut(to.Address, "!")
	switch {
	case !ok:
		return nil, socket.BadAddress(name, "dial", to.Address, `it should be a boot ID, "!" and a Unix socket's address`)
	case machine != boot:
		return nil, failure("dial", to.Address, transports.CodeUnreachable, errors.New("that is another machine, or this one before it was started anew"))
	}
	l, err := t.sockets.Dial(ctx, transports.DialSpec{Address: at})
	if err != nil {
		return nil, renamed(err, to.Address)
	}
	sock, err := detach(l)
	if err != nil {
		return nil, failure("dial", to.Address, transports.CodeInternal, err)
	}
	x, err := offer(ctx, sock, int(t.size.Load()))
	if err != nil {
		return nil, explain("dial", to.Address, err)
	}
	return x, nil
}

// detach takes the socket out of a link that has passed no bytes.
func detach(l link.Link) (int, error) {
	fd, early, err := l.(transports.Socket).Detach()
	if err == nil && len(early) > 0 {
		err = errors.Join(fmt.Errorf("%d bytes came too early", len(early)), unix.Close(fd))
	}
	return fd, err
}

func failure(op, address string, code transports.Code, err error) *transports.Error {
	return &transports.Error{Transport: name, Op: op, Address: address, Code: code, Reason: err.Error(), Cause: err}
}

func renamed(err error, address string) error {
	var e *transports.Error
	if !errors.As(err, &e) {
		return err
	}
	own := *e
	own.Transport, own.Address = name, address
	return &own
}

func explain(op, address string, err error) error {
	var refused *refusedError
	switch {
	case errors.As(err, &refused):
		return failure(op, address, transports.CodeRefused, err)
	case errors.Is(err, errProtocol), errors.Is(err, ring.ErrRegion):
		return failure(op, address, transports.CodeProtocol, err)
	}
	return socket.Failure(name, op, address, err)
}
