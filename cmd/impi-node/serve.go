package main

import (
	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/node"
)

// serving is the job's server in the launcher, if one of the sites embeds it,
// and what all sites must know of it.
type serving struct {
	server *node.Server
	told   order
}

// newServing starts the server.
func newServing(job *config.Job, sites []config.Site, log hclog.Logger) (*serving, error) {
	s := &serving{}
	for _, site := range sites {
		auth := site.Auth
		if auth.Random && s.told.Key == nil {
			drawKey(&auth)
			s.told.Key = &auth.Key
		}
	}
	for _, site := range sites {
		if !site.Server.Embedded {
			continue
		}
		if s.told.Key != nil {
			site.Auth = config.Auth{Keyed: true, Key: *s.told.Key}
		}
		var err error
		if s.server, err = node.Serve(job, site, log); err != nil {
			return nil, err
		}
		at := s.server.Address()
		s.told.Server = &at
	}
	return s, nil
}

// close ends the server, which has nothing to do any more.
func (s *serving) close() {
	if s.server != nil {
		s.server.Close()
	}
}
