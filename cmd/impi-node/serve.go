package main

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/launch"
	"github.com/openimpi/impi/internal/loglimit"
	"github.com/openimpi/impi/internal/site/server"
)

// serving is the job's server in the launcher, if one of the sites embeds it, and what all sites
// need to know about it.
type serving struct {
	server *server.Server
	told   order

	mu    sync.Mutex
	heads map[wire.ClientRank]*launch.Process // nodes that are connected with the server
}

// nodeEnd is how long after the end of its connections the end of a node's process may be noticed.
const nodeEnd = 2 * time.Second

func (s *serving) started(client int, p *launch.Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heads == nil {
		s.heads = make(map[wire.ClientRank]*launch.Process)
		if s.server != nil {
			s.server.Ask(s.whyEnded)
		}
	}
	s.heads[wire.ClientRank(client)] = p
}

// whyEnded returns how the node ended whose connection to the server is lost, so that the other
// sites' pages and reports say it, too; nil if it has not ended.
func (s *serving) whyEnded(client wire.ClientRank, stop <-chan struct{}) error {
	s.mu.Lock()
	p := s.heads[client]
	s.mu.Unlock()
	if p == nil {
		return nil
	}
	select {
	case <-p.Exited():
		return fmt.Errorf("its node %v", p.Exit())
	case <-time.After(nodeEnd):
	case <-stop:
	}
	return nil
}

// newServing starts the server, and adds what nodes need to know about it to their orders.
func newServing(job *config.Job, nodes []nodeSpec, told order, log hclog.Logger) (*serving, error) {
	s := &serving{told: told}
	for _, x := range nodes {
		auth := x.site.Auth
		if auth.Random && s.told.Key == nil {
			drawKey(&auth)
			s.told.Key = &auth.Key
		}
	}
	for _, x := range nodes {
		site := x.site
		if !site.Server.Embedded {
			continue
		}
		if s.told.Key != nil {
			site.Auth = config.Auth{Keyed: true, Key: *s.told.Key}
		}
		var err error
		if s.server, err = server.Serve(job, site, log); err != nil {
			return nil, err
		}
		at := s.server.Address()
		s.told.Server = &at
	}
	return s, nil
}

// relauncher applies changes of the job file to the launcher itself, once a node has taken those of
// its site: the certificates of the job's server, and the log level, which is that of the first
// site.
type relauncher struct {
	*serving
	job       *config.Job
	first     string // name of the first site
	addresses map[string]netip.Addr
	fixed     bool // -log-level overrides the file
	log       hclog.Logger
	mu        sync.Mutex
}

func (r *relauncher) reload(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.take(name); err != nil {
		r.log.Error("the launcher goes on as it was: correct that and reload again", "error", err)
	}
}

func (r *relauncher) take(name string) error {
	isLocal, err := local()
	if err != nil {
		return err
	}
	job, found := load(context.Background(), r.job.File, isLocal, r.addresses, nil, "", false)
	if found.HasErrors() {
		return found.Err()
	}
	site, ok := job.Site(name)
	if !ok {
		return fmt.Errorf("%s has no site %q any more", r.job.File, name)
	}
	if before, _ := r.job.Site(name); r.server.Identity() != nil && before.Server.Embedded {
		id, err := server.Certificates(site)
		if err != nil {
			return err
		}
		if id != nil {
			r.server.Identity().Replace(id)
			loglimit.ReportReload(r.log, hclog.Info, "reloaded: new connections to the job's server use the certificate as it is in its file now", "certificate", id.Name())
		}
	}
	if level := hclog.LevelFromString(site.Log.Level); name == r.first && !r.fixed && level != r.log.GetLevel() {
		was := r.log.GetLevel()
		loglimit.SetLevel(r.log, level, func() {
			loglimit.ReportReload(r.log, hclog.Info, "reloaded: log level of the launcher", "from", was, "to", level)
		})
	}
	return nil
}

// serverWord is how long nodes wait for the server to tell them that it, or another site, has
// failed. Then the launcher ends them: some may not have reached the server.
const serverWord = 2 * time.Second

// onFailure calls f if the server fails and release is not called in time.
func (s *serving) onFailure(f func()) (release func()) {
	quit := make(chan struct{})
	if s.server != nil {
		go func() {
			select {
			case <-s.server.Done():
			case <-quit:
				return
			}
			if s.server.Failure() == nil {
				return
			}
			select {
			case <-time.After(serverWord):
				f()
			case <-quit:
			}
		}()
	}
	return func() { close(quit) }
}

// explain replaces the nodes' outcome if the server knows better: it may have failed itself, for
// example because a site never joined.
func (s *serving) explain(o outcome) outcome {
	if s.server == nil || o.Status == statusOK {
		return o
	}
	select {
	case <-s.server.Done():
	default:
		return o
	}
	if f := s.server.Failure(); f != nil && f.Status == ending.StatusTimeout {
		return outcome{Text: f.Text, Status: f.Status}
	}
	return o
}

func (s *serving) close() {
	if s.server != nil {
		s.server.Close()
	}
}
