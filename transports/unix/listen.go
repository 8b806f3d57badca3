package unix

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	sys "golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// Listen makes the socket at.Name in the private folder at.Dir, or an abstract one if so
// configured. A file of that name on which no process listens any more is replaced.
func (t *Transport) Listen(ctx context.Context, at transports.ListenSpec) (transports.Listener, error) {
	p, err := t.settings.Load().place(at)
	if err != nil {
		return nil, err
	}
	short, release, err := p.reachable()
	if err != nil {
		return nil, failedListen(p, err)
	}
	defer release()
	ln, err := bind(ctx, short)
	if err != nil {
		return nil, failedListen(p, err)
	}
	// The file is removed by its own path: the short one may be gone by then.
	ln.SetUnlinkOnClose(false)
	return &listener{transport: t, accept: socket.NewAcceptor(ln), at: p}, nil
}

// place says where a listener's socket goes, or what is wrong with at.
func (s *settings) place(at transports.ListenSpec) (place, error) {
	wanted := filepath.Join(at.Dir, at.Name)
	if at.Name == "" || strings.ContainsAny(at.Name, "/\x00") || len(at.Name) > 64 {
		return place{}, socket.BadAddress(name, "listen", wanted, "a name of 1 to 64 bytes without slashes is needed")
	}
	if s.abstract {
		return abstractPlace(at.Name), nil
	}
	dir, err := filepath.Abs(at.Dir)
	if err != nil || at.Dir == "" {
		return place{}, socket.BadAddress(name, "listen", wanted, "a folder for the socket file is needed")
	}
	if err := private(dir); err != nil {
		return place{}, socket.BadAddress(name, "listen", wanted, err.Error())
	}
	return place{path: filepath.Join(dir, at.Name+".sock")}, nil
}

// private returns an error unless only this user can get at what is in dir.
func private(dir string) error {
	var st sys.Stat_t
	if err := sys.Stat(dir, &st); err != nil {
		return fmt.Errorf("the folder %s: %w", dir, err)
	}
	switch {
	case st.Mode&sys.S_IFMT != sys.S_IFDIR:
		return fmt.Errorf("%s is not a folder", dir)
	case int(st.Uid) != sys.Geteuid():
		return fmt.Errorf("the folder %s belongs to user %d, not to user %d", dir, st.Uid, sys.Geteuid())
	case st.Mode&0o077 != 0:
		return fmt.Errorf("the folder %s is open to others (mode %#o); chmod 700 it", dir, st.Mode&0o777)
	}
	return nil
}

// bind listens at an address, over a file that a dead listener left there.
func bind(ctx context.Context, short string) (*net.UnixListener, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "unix", short)
	if errors.Is(err, syscall.EADDRINUSE) && dead(ctx, short) {
		if err := os.Remove(short); err != nil {
			return nil, err
		}
		ln, err = lc.Listen(ctx, "unix", short)
	}
	if err != nil {
		return nil, err
	}
	return ln.(*net.UnixListener), nil
}

// dead reports whether nobody listens at a socket file.
func dead(ctx context.Context, short string) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", short)
	if err == nil {
		conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

func failedListen(p place, err error) *transports.Error {
	e := socket.Failure(name, "listen", p.String(), err)
	switch {
	case errors.Is(err, syscall.ENAMETOOLONG):
		e.Code, e.Reason = transports.CodeAddress, err.Error()+"; use a shorter runtime folder, or abstract = true"
	case len(p.path) > maxPath && errors.Is(err, syscall.ENOENT):
		e.Code, e.Reason = transports.CodeAddress, fmt.Sprintf(
			"the path has %d bytes, a socket's at most %d, and /proc, which helps out, is not mounted; use a shorter runtime folder, or abstract = true",
			len(p.path), maxPath)
	case errors.Is(err, syscall.EADDRINUSE):
		e.Reason = "another process listens there; two listeners of this machine have one name"
	}
	return e
}

type listener struct {
	transport *Transport
	accept    *socket.Acceptor
	at        place
	close     sync.Once
}

// Accept waits for a connection. One by another user is a retryable error with CodeAuth; the
// listener continues.
func (l *listener) Accept(ctx context.Context) (link.Link, error) {
	conn, err := l.accept.Accept(ctx)
	if errors.Is(err, link.ErrClosed) {
		return nil, link.ErrClosed
	}
	if err != nil {
		return nil, socket.Failure(name, "accept", l.Address(), err)
	}
	return l.transport.settings.Load().link("accept", l.Address(), conn)
}

// Address returns the path or "@" and the abstract name, percent-escaped.
func (l *listener) Address() string { return l.at.String() }

// Close closes the socket and removes its file.
func (l *listener) Close() (err error) {
	l.close.Do(func() {
		if l.at.path != "" {
			if rm := os.Remove(l.at.path); rm != nil && !errors.Is(rm, os.ErrNotExist) {
				err = rm
			}
		}
		err = errors.Join(l.accept.Close(), err)
	})
	return err
}
