package node

import (
	"io"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/node/member"
	"github.com/openimpi/impi/internal/node/procs"
	"github.com/openimpi/impi/internal/node/reload"
	"github.com/openimpi/impi/internal/node/spawner"
)

// Options say what a node runs and where its output goes.
type Options struct {
	Job  *config.Job // the file; for the names and number of the other sites, and the limits
	Site config.Site // the site that this node is; its server's port and its key are known

	// Now ends the job at once when it is closed: procs are killed without being
	// asked. The end of Run's context asks them first.
	Now <-chan struct{}

	// Signals are passed on to all procs, including those that were spawned here. nil: none.
	Signals <-chan os.Signal

	// Waited is how much of the job's limit for the start is gone: host names were looked up.
	Waited time.Duration

	// BoundBefore is how many procs of other sites on this machine get cores before those of
	// this one, and Bound how many procs of all sites do. 0: this site is the only one.
	BoundBefore, Bound int

	Stdin  *os.File  // for the proc that Site.Program.Stdin names; nil: none
	Stdout io.Writer // of all procs, by whole lines
	Stderr io.Writer // of all procs, and the log's if Logger is nil
	Logger hclog.Logger

	// RunBase is the directory for the node's own one; empty stands for the
	// system's place for such things.
	RunBase string

	// Cluster says which host of Site this node runs; nil: all of them.
	Cluster *member.ClusterConfig

	// Joined are the procs, in the order of their ranks, where a process manager has started
	// them; nil: the node starts them.
	Joined []procs.Joined

	// Failing is called with the failure that ends the job, before the procs are told. It may be nil.
	Failing func(*ending.Failure)

	// File is where Job and Site come from, and is read again by a reload; nil: nothing can be.
	File *reload.Source

	// Reload has the site read its job file again each time something comes; nil: nothing does.
	Reload <-chan struct{}
	// Reloaded is called when changes of the file were taken; may be nil.
	Reloaded func()

	// Lost is told without which procs the job goes on, in the place of the log; nil: the log is.
	Lost func(wire.Lost)

	// OnDemand says which channels are made on demand: the same at all sites.
	OnDemand agent.OnDemand

	spawned *spawner.Local // the node is of a spawned world: what it is to run
	root    *node          // and the site's own node, in whose process it is
}
