package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/names"
	"github.com/openimpi/impi/internal/node/procs"
	"github.com/openimpi/impi/internal/node/server"
	"github.com/openimpi/impi/internal/wireup"
)

const (
	namesLimit = 10 * time.Second // for an answer, where the proc gives no time
	scopeOfJob = "job"            // what procs call the scope that only their job sees
)

// registrar is what the node does about names of ports: it asks the job's own server,
// or the one that the site's file names.
type registrar struct {
	n *node

	mu     sync.Mutex
	own    *names.Session // with the job's server; nil until it is needed
	shared *names.Session // with the file's
	closed bool
}

// heardName is a proc's request about a name, which is answered later.
func (m *meetings) heardName(p *procs.Proc, kind wireup.Kind, x *wireup.Meeting) {
	if !m.begin(p, func() { m.names.carryOut(p, kind, x) }) {
		m.refuse(p, wireup.KindNamed, x.Request, mpierr.Other, "too many calls of the proc are under way, or the job is ending")
	}
}

// carryOut is a request from its begin to its answer.
func (r *registrar) carryOut(p *procs.Proc, kind wireup.Kind, x *wireup.Meeting) {
	m := r.n.direct.meet
	limit := x.Timeout
	if limit <= 0 {
		limit = namesLimit
	}
	ctx, cancel := context.WithTimeoutCause(m.d.ctx, limit, fmt.Errorf("there was no answer for %v", limit))
	defer cancel()
	port, err := r.do(ctx, kind, x)
	switch {
	case err == nil:
		m.answer(p, wireup.Message{Kind: wireup.KindNamed, Meeting: &wireup.Meeting{Request: x.Request, Port: port}})
	case m.d.ctx.Err() == nil:
		m.refuse(p, wireup.KindNamed, x.Request, classOfName(err), err.Error())
	}
}

func (r *registrar) do(ctx context.Context, kind wireup.Kind, x *wireup.Meeting) (port string, err error) {
	scope, given := x.Info["scope"]
	s, scope, err := r.session(scope, given)
	if err != nil {
		return "", err
	}
	switch kind {
	case wireup.KindPublish:
		return "", s.Publish(ctx, scope, x.Service, x.Port)
	case wireup.KindUnpublish:
		return "", s.Unpublish(ctx, scope, x.Service)
	default: // wireup.KindLookup
		return s.Lookup(ctx, scope, x.Service)
	}
}

// errScope means a scope that cannot be one.
var errScope = errors.New("bad scope")

// session gives who is to be asked about a scope, and what it calls the scope.
func (r *registrar) session(scope string, given bool) (*names.Session, string, error) {
	if len(scope) > names.MaxScope {
		return nil, "", fmt.Errorf("%w: %d bytes, at most %d", errScope, len(scope), names.MaxScope)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, "", errors.New("the job is ending")
	}
	file := &r.n.opt.Site.Names
	shared := file.Shared()
	switch {
	case given && scope == scopeOfJob:
		scope, shared = "", false
	case !given:
		scope = file.Scope
	}
	if shared {
		if r.shared == nil {
			r.shared = r.open(file.Server, file.Auth)
		}
		return r.shared, scope, nil
	}
	if r.own == nil {
		root := r.root()
		at := root.opt.Site.Server.Address
		if root.server != nil {
			at = root.server.Address()
		}
		r.own = r.open(at, root.opt.Site.Auth)
	}
	return r.own, scope, nil
}

// root is the node whose job's names these are: a spawned world has those of the job
// that it was spawned in.
func (r *registrar) root() *node {
	if s := r.n.opt.share; s != nil {
		return s.service.root
	}
	return r.n
}

func (r *registrar) open(at netip.AddrPort, auth config.Auth) *names.Session {
	token := r.root().direct.token
	if token == (dynamic.Token{}) {
		_, _ = rand.Read(token[:]) // never fails
	}
	return names.NewSession(names.Settings{
		Server: at.String(), Auth: server.AuthOf(auth), Owner: names.OwnerOf(token[:]), Logger: r.n.log.Named("names"),
	})
}

// close ends the names that were published from here.
func (r *registrar) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, s := range []*names.Session{r.own, r.shared} {
		if s != nil {
			s.Close()
		}
	}
}

// classOfName is the MPI error class of how a request about a name failed.
func classOfName(err error) mpierr.Class {
	switch {
	case errors.Is(err, names.ErrPublished), errors.Is(err, names.ErrUnknown), errors.Is(err, names.ErrFull):
		return mpierr.Service
	case errors.Is(err, names.ErrNotFound):
		return mpierr.Name
	case errors.Is(err, names.ErrDenied):
		return mpierr.Access
	case errors.Is(err, errScope):
		return mpierr.InfoValue
	case errors.Is(err, names.ErrName):
		return mpierr.Arg
	}
	return mpierr.Other
}
