package node

import (
	"io"
	"net"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/operator/reload"
	"github.com/openimpi/impi/internal/procs"
	"github.com/openimpi/impi/internal/site/client"
	"github.com/openimpi/impi/internal/spawner"
)

// Options define what a node runs and where its output goes.
type Options struct {
	Job  *config.Job // the file; for the names and number of the other sites, and the limits
	Site config.Site // the site that this node is; its server's port and its key are known

	// EndNow ends the job at once when it is closed: procs are killed without being asked to end. The
	// end of Run's context asks them first.
	EndNow <-chan struct{}

	// Signals are passed on to all procs, including those that were spawned here. nil: none.
	Signals <-chan os.Signal

	// Waited is the part of the job's limit for the start that has passed: host names were looked
	// up.
	Waited time.Duration

	// BoundBefore is the number of procs of other sites on this machine that get cores before those
	// of this one, and Bound the number of procs of all sites that do. 0: this site is the only
	// one.
	BoundBefore, Bound int

	Stdin  *os.File  // for the proc that Site.Program.Stdin names; nil: none
	Stdout io.Writer // of all procs, by whole lines
	Stderr io.Writer // of all procs, and the log's if Logger is nil
	Logger hclog.Logger

	// RunBase is the directory in which the node creates its own; empty means the system's
	// directory for such files.
	RunBase string

	// Cluster defines which host of Site this node runs; nil: all of them.
	Cluster *client.ClusterConfig

	// Server is a port that server.Listen has opened for the job's server, if that is embedded here;
	// nil: the node opens one.
	Server net.Listener

	// Joined are the procs, in the order of their ranks, where a process manager has started
	// them; nil: the node starts them.
	Joined []procs.Joined

	// Failing is called with the failure that ends the job, before the procs are informed. It may
	// be nil.
	Failing func(*ending.Failure)

	// File is the source of Job and Site, which a reload reads again; nil: there is none.
	File *reload.Source

	// Reload makes the site read its job file again each time it sends a value; may be nil.
	Reload <-chan struct{}
	// Reloaded is called when changes of the file were applied; may be nil.
	Reloaded func()

	// Lost is called with the procs without which the job continues. If it is nil they are logged.
	Lost func(wire.Lost)

	// OnDemand selects the channels that are made on demand: the same at all sites.
	OnDemand agent.OnDemand

	spawned *spawner.Local // not nil: the node is of a spawned world, and runs this
	root    *node          // the site's own node, in whose process it is
}
