package site

import (
	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/internal/routes"
)

// Site is what a node has opened for others. The transports are in the table of its routes.
type Site struct {
	Routes *routes.Table
	Log    hclog.Logger
	Dir    string // where plugins and listeners may have sockets
	Hosts  []*Host
}
