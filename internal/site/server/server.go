// Package server runs a job's server inside a node or a launcher of nodes, and says how a site is
// to connect to its server.
package server

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/listen"
	"github.com/openimpi/impi/internal/names"
	"github.com/openimpi/impi/internal/rendezvous"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/site/report"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// Server is the job's server inside a node or a launcher.
type Server struct {
	job     *config.Job
	address netip.AddrPort
	cancel  context.CancelFunc
	done    chan struct{}
	err     error // valid when done is closed
	id      *rendezvous.Identity

	mu      sync.Mutex
	missing []wire.ClientRank
	why     EndReason
}

// EndReason finds out why the connection of a client to the server has ended, until stop is closed;
// it returns nil if the reason is not known.
type EndReason func(client wire.ClientRank, stop <-chan struct{}) error

// Ask sets f as the function that finds why the connections of clients have ended by which the job
// fails.
func (s *Server) Ask(f EndReason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.why = f
}

func (s *Server) whyEnded(client wire.ClientRank, stop <-chan struct{}) error {
	s.mu.Lock()
	f := s.why
	s.mu.Unlock()
	if f == nil {
		return nil
	}
	return f(client, stop)
}

// Serve starts the server that a site's file embeds. It ends with its job, or by Close.
func Serve(job *config.Job, site config.Site, log hclog.Logger) (*Server, error) {
	return ServeFor(NoClient, job, site, log)
}

// NoClient is the client rank of a launcher, which runs a server but is no client of it.
const NoClient wire.ClientRank = -1

// ServeFor is Serve in the node of client self, which is not named in the lists of clients that are
// missing.
func ServeFor(self wire.ClientRank, job *config.Job, site config.Site, log hclog.Logger) (*Server, error) {
	ln, err := Listen(context.Background(), job, site, site.Server.Address)
	if err != nil {
		return nil, fmt.Errorf("the job's server: %w", err)
	}
	s, err := ServeAt(ln, self, job, site, log)
	if err != nil {
		_ = ln.Close()
	}
	return s, err
}

// Listen opens a port for a server of a site, one of the site's ports if at has none.
func Listen(ctx context.Context, job *config.Job, site config.Site, at netip.AddrPort) (net.Listener, error) {
	return listen.TCP(ctx, net.ListenConfig{KeepAliveConfig: socket.KeepAlive(routes.SilenceLimit(job))}, at, site.Ports)
}

// ServeAt is ServeFor at a port that Listen has opened. The caller closes ln after an error.
func ServeAt(ln net.Listener, self wire.ClientRank, job *config.Job, site config.Site, log hclog.Logger) (*Server, error) {
	kept, err := names.NewServer(names.ServerConfig{Auth: AuthOf(site.Auth), Logger: report.QuietLogger{Logger: log.Named("names")}})
	if err != nil {
		return nil, fmt.Errorf("the job's server: %w", err)
	}
	id, err := certificatesOf(site)
	if err != nil {
		return nil, err
	}
	optional := site.Server.TLS == config.TLSOptional
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{job: job, address: ln.Addr().(*net.TCPAddr).AddrPort(), cancel: cancel, done: make(chan struct{}), id: id}
	for c := range site.Server.Clients {
		s.missing = append(s.missing, wire.ClientRank(c))
	}
	stop := report.LogWait(log, time.Now().Add(site.Server.Timeout), func() string { return s.WaitingFor(self) })
	cfg := rendezvous.Config{
		Server: startup.ServerConfig{Clients: site.Server.Clients, Auth: AuthOf(site.Auth), Limit: site.Server.Timeout, SurvivesLoss: job.Survive, Spares: len(job.Spares)},
		Logger: report.QuietLogger{Logger: log.Named("server")},
		Notify: s.heard, Names: kept, Why: s.whyEnded,
		Identity: id, Unverified: optional, NeedTLS: needsTLS(job, site),
	}
	go func() {
		defer close(s.done)
		defer cancel()
		s.err = rendezvous.Serve(ctx, ln, cfg)
		stop()
	}()
	return s, nil
}

// needsTLS reports whether an embedded server refuses connections without TLS: the file says so, or
// the site has certificates and the file shows that no site runs another MPI.
func needsTLS(job *config.Job, site config.Site) bool {
	foreign := slices.ContainsFunc(job.Sites, func(s config.Site) bool { return s.Foreign })
	return site.Server.TLS == config.TLSRequired ||
		site.Server.TLS == config.TLSUnsaid && hasCertificates(site) && job.Complete && !foreign
}

// AuthOf returns the authentication that a block "auth" asks for.
func AuthOf(a config.Auth) startup.Auth {
	return startup.Auth{None: a.None, HasKey: a.Keyed, Key: a.Key}
}

// Address returns the address where the server listens.
func (s *Server) Address() netip.AddrPort { return s.address }

// Identity returns the server's certificate, or nil if there is no server here, or it has none.
func (s *Server) Identity() *rendezvous.Identity {
	if s == nil {
		return nil
	}
	return s.id
}

// Done returns a channel that is closed when the job is over.
func (s *Server) Done() <-chan struct{} { return s.done }

// Failure waits for the end of the job and returns why it failed, or nil.
func (s *Server) Failure() *ending.Failure {
	<-s.done
	if s.err == nil {
		return nil
	}
	return ending.ServerFailure(s.err, false, func(c wire.ClientRank) string { return routes.ClientName(s.job, c) })
}

// Close ends the server; a job that is not over fails.
func (s *Server) Close() {
	s.cancel()
	<-s.done
}

func (s *Server) heard(e startup.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.Kind {
	case startup.EventJoined:
		s.missing = slices.DeleteFunc(s.missing, func(c wire.ClientRank) bool { return c == e.Client })
	case startup.EventFailed:
		s.missing = nil
	default: // nothing new about who is missing
	}
}

// WaitingFor returns the names of the clients except self that have not come.
func (s *Server) WaitingFor(self wire.ClientRank) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, c := range s.missing {
		if c != self {
			names = append(names, routes.ClientName(s.job, c))
		}
	}
	return strings.Join(names, ", ")
}
