package main

import (
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/node/server"
)

// serving is the job's server in the launcher, if one of the sites embeds it, and what all sites
// need to know about it.
type serving struct {
	server *server.Server
	told   order
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

// close ends the server when it is no longer needed.
func (s *serving) close() {
	if s.server != nil {
		s.server.Close()
	}
}
