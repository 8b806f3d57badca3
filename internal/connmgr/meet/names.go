package meet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/core/names"
	"github.com/openimpi/impi/core/startup"
	service "github.com/openimpi/impi/internal/names"
	"github.com/openimpi/impi/internal/procs"
	"github.com/openimpi/impi/internal/wireup"
)

const namesLimit = 10 * time.Second // for an answer, where the proc gives no time

// NameSettings define the name services of a node.
type NameSettings struct {
	File config.Names // from the site's file

	// Own returns the address of the job's own server, and how to authenticate there. A spawned
	// world uses the names of the job that it was spawned in.
	Own func() (netip.AddrPort, config.Auth)

	Owner dynamic.Token // of the job whose server Own returns
	Log   hclog.Logger
}

// nameService publishes and looks up service names, at the job's own server or at the one in the
// site's file.
type nameService struct {
	NameSettings

	mu     sync.Mutex
	own    *service.Client // with the job's server; nil until it is needed
	shared *service.Client // of the server in the file
	closed bool
}

func (m *Meetings) name(p *procs.Proc, kind wireup.Kind, x *wireup.OtherWorld) {
	limit := x.Timeout
	if limit <= 0 {
		limit = namesLimit
	}
	ctx, cancel := context.WithTimeoutCause(m.Ctx, limit, fmt.Errorf("there was no answer for %v", limit))
	defer cancel()
	port, err := m.names.do(ctx, kind, x)
	if err == nil || m.Ctx.Err() == nil {
		m.with(func(n *deciding) { n.Named(p, x.Request, port, classOfName(err), err) })
	}
}

func (s *nameService) do(ctx context.Context, kind wireup.Kind, x *wireup.OtherWorld) (port string, err error) {
	scope, given := x.Info["scope"]
	at, scope, err := s.client(scope, given)
	if err != nil {
		return "", err
	}
	switch kind {
	case wireup.KindPublish:
		return "", at.Publish(ctx, scope, x.Service, x.Port)
	case wireup.KindUnpublish:
		return "", at.Unpublish(ctx, scope, x.Service)
	default: // wireup.KindLookup
		return at.Lookup(ctx, scope, x.Service)
	}
}

// client returns the client for the scope that a request has, if it was given one, and the scope to
// ask its server for.
func (s *nameService) client(scope string, given bool) (*service.Client, string, error) {
	file := &s.File
	shared, scope, err := names.DefaultScope{Shared: file.Shared(), Scope: file.Scope}.ScopeOf(scope, given)
	if err != nil {
		return nil, "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, "", errors.New("the job is ending")
	}
	if shared {
		if s.shared == nil {
			s.shared = s.open(file.Server, file.Auth)
		}
		return s.shared, scope, nil
	}
	if s.own == nil {
		s.own = s.open(s.Own())
	}
	return s.own, scope, nil
}

func (s *nameService) open(at netip.AddrPort, auth config.Auth) *service.Client {
	token := s.Owner
	if token == (dynamic.Token{}) {
		_, _ = rand.Read(token[:]) // never fails
	}
	return service.NewClient(service.Settings{
		Server: at.String(), Auth: startup.Auth{None: auth.None, HasKey: auth.Keyed, Key: auth.Key}, Owner: names.OwnerOf(token[:]), Logger: s.Log.Named("names"),
	})
}

// close disconnects from the servers, which unpublish the names of this node then.
func (s *nameService) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, at := range []*service.Client{s.own, s.shared} {
		if at != nil {
			at.Close()
		}
	}
}

func classOfName(err error) mpierr.Class {
	if errors.Is(err, service.ErrDenied) {
		return mpierr.Access
	}
	return mpierr.Of(err)
}
