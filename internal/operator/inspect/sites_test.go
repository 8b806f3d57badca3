package inspect

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/site"
)

// TestAnswersOfOtherSites: a site tells of itself alone, in this job, and not of more than it has.
func TestAnswersOfOtherSites(t *testing.T) {
	world := &startup.Job{Clients: []startup.ClientInfo{
		{NHosts: 1, NProcs: 2, Own: true}, {Rank: 1, NHosts: 2, NProcs: 2, FirstHost: 1, FirstProc: 2, Own: true},
	}}
	s := &site.Site{Routes: &routes.Table{World: world, Job: &config.Job{}}}
	c := &Control{Settings: Settings{Name: "heat", Site: s}}
	id := jobID(c.Site.Routes.World)
	far := &world.Clients[1]
	node := func() *links.Node {
		n := &links.Node{Unused: 9, Left: 9, Sites: make([]links.Site, 1000)}
		for rank := range 1000 {
			n.Procs = append(n.Procs, links.Proc{Rank: rank})
			n.Views = append(n.Views, links.View{Local: rank, Peer: -1})
			n.Log = append(n.Log, links.LogLine{Text: strings.Repeat("x", 500), At: time.Unix(int64(rank), 0)})
		}
		return n
	}
	got := c.believed(far, []links.HostAnswer{
		{About: links.NodeInfo{Client: 1, ID: id, Job: "forged", Site: "forged", Number: 0}, Node: node()},
		{About: links.NodeInfo{Client: 0, ID: id}, Node: node()},
	})
	if len(got) != 1 || got[0].About.Job != "heat" || got[0].About.Client != 1 || got[0].About.Site == "forged" {
		t.Fatalf("%+v", got)
	}
	if n := got[0].Node; len(n.Procs) != 2 || n.Procs[0].Rank != int(wire.WorldRank(2)) || len(n.Views) != 0 || n.Sites != nil || n.Unused != 0 || n.Left != 0 || n.NodeInfo != got[0].About {
		t.Errorf("%+v", n)
	}
	if n := got[0].Node; len(n.Log) != mostLog/2/600 || n.Log[len(n.Log)-1].At.Unix() != 999 {
		t.Errorf("%d lines of a log, the last one of %v", len(n.Log), n.Log[len(n.Log)-1].At)
	}
	for name, about := range map[string]links.NodeInfo{"another site": {Client: 0, ID: id}, "another job": {Client: 1, ID: "beef"}} {
		if got := c.believed(far, []links.HostAnswer{{About: about, Node: node()}}); len(got) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := c.believed(far, make([]links.HostAnswer, 100)); len(got) != 0 {
		t.Errorf("%d answers", len(got))
	}
}

// TestIdentitiesAreNotTold: the number that a proc has in its job is told as its process ID only if
// it is one.
func TestIdentitiesAreNotTold(t *testing.T) {
	proc := func(pid int64) startup.ProcInfo { return startup.ProcInfo{ID: wire.Proc{PID: pid}} }
	world := &startup.Job{
		Clients: []startup.ClientInfo{{NProcs: 2, Own: true}, {Rank: 1, NProcs: 2, FirstProc: 2}},
		Procs:   startup.ListProcs(proc(1<<62|1<<40), proc(1<<62|1<<40+1), proc(17087), proc(17088)),
	}
	c := &Control{Settings: Settings{Site: &site.Site{Routes: &routes.Table{World: world, Job: &config.Job{}}}}}
	got := c.sites()
	if len(got) != 2 || got[0].PIDs != nil || !slices.Equal(got[1].PIDs, []int{17087, 17088}) {
		t.Errorf("%+v", got)
	}
}
