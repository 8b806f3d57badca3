// Package channel makes the channels between the hosts of a job as agent.Dance decides, proves
// them where the sites share a secret, and makes further connections for those that resume.
package channel

import (
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/node/dial"
	"github.com/openimpi/impi/internal/node/routes"
	"github.com/openimpi/impi/internal/node/site"
	"github.com/openimpi/impi/internal/node/tasks"
)

// Settings are what channels need of a node.
type Settings struct {
	Site      *site.Site // its hosts have their ranks
	Routes    *routes.Table
	Own       dynamic.Token // that only this site has
	Keys      func(at *site.Listener) dynamic.Keys
	Tasks     *tasks.Group
	FallBacks *dial.FallBacks
	Log       hclog.Logger
	Ready     <-chan struct{} // closed when all hosts have their channels
	Deadline  time.Time       // for all of them
}

// Channels are those of a site's hosts.
type Channels struct {
	Settings
	tokens tokens
	ends   []*end
}

// end is one of the site's hosts with its channels.
type end struct {
	*site.Host
	resumable []*channel             // that resume; appended to before the switch runs
	danced    chan struct{}          // closed when making channels has begun
	dancing   atomic.Pointer[dancer] // while channels are made
}

// New makes the Channels of hosts that have none yet.
func New(s Settings) *Channels {
	c := &Channels{Settings: s}
	c.tokens = newTokens(c)
	for _, h := range s.Site.Hosts {
		c.ends = append(c.ends, &end{Host: h, danced: make(chan struct{})})
	}
	return c
}
