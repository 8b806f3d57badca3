package node

import (
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/connmgr/direct"
	"github.com/openimpi/impi/internal/procs"
	"github.com/openimpi/impi/internal/routes/routestest"
	"github.com/openimpi/impi/internal/site"
)

// twoSites is a node of client 0 with ranks 0 and 1; client 1 has 2 and 3.
func twoSites(t *testing.T, own ...config.Route) *node {
	t.Helper()
	job := testJob("ring", 2, 2)
	n := &node{opt: Options{Job: job, Site: job.Sites[0]}}
	n.routes = routestest.TwoSites(job, &n.opt.Site, own...)
	job.Sites[0].Routes = own
	n.job = n.routes.World
	n.hosts = []*ownHost{{Host: &site.Host{Config: job.Sites[0].Hosts[0]}}}
	n.procs = procs.NewWithoutProcesses(procs.Settings{Routes: n.routes}, 2, ending.InMPI)
	n.procs.SetRanks()
	n.direct = direct.New(direct.Settings{Routes: n.routes, Procs: n.procs})
	return n
}
