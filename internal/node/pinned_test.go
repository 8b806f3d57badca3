package node

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/launch/launchtest"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

func init() {
	programs["stranded"] = func() { // rank 0 waits for what never comes
		w := initialize()
		everybody(w)
		ring(w) // when rank 0 is through, nothing is under way any more
		if w.Rank() == 0 {
			fmt.Println("waits")
			var x [1]int64
			_, err := mpi.Recv(w, x[:], 1, 99)
			check(err)
		}
		hang()
	}
	programs["expectant"] = func() { // rank 0 waits for anybody
		w := initialize()
		everybody(w)
		ring(w)
		if w.Rank() == 0 {
			fmt.Println("waits")
			var x [1]int64
			_, err := mpi.Recv(w, x[:], mpi.AnySource, 99)
			check(err)
		}
		hang()
	}
}

func pinning(planes ...string) config.Route {
	return config.Route{Prefer: []string{"tcp"}, Direct: true, DataPlane: planes}
}

// A job runs by every data plane, and its nodes know which one it was and why.
func TestPinnedPlanes(t *testing.T) {
	for _, plane := range []string{"fd", "ring", "stream", "grpc"} {
		t.Run(plane, func(t *testing.T) {
			all := start(t, route(testJob("all", 2, 1), pinning(plane)))
			wantNone(t, all)
			if got := all[0].out.Line(t, "[0] sum "); got != "3" {
				t.Errorf("sum %s", got)
			}
			log := all[0].err.String() + all[1].err.String()
			want := fmt.Sprintf(`data_plane=%s reason="the link is a kernel socket, and the site's config wants %s"`, plane, plane)
			if !strings.Contains(log, want) {
				t.Errorf("the logs do not have %s", want)
			}
		})
	}
}

// A plane that no transport of the route has is a fault of the job file, not a slower
// job.
func TestPinnedPlaneThatNobodyHas(t *testing.T) {
	r := pinning("peer-shm")
	r.Pos = config.Pos{File: "job.hcl", Line: 7, Column: 1}
	all := start(t, route(testJob("all", 1), r))
	f := end(all)[0]
	want := `job.hcl:7:1: route "*" pins data_plane = ["peer-shm"], and none of its transports has such links: tcp has ["fd", `
	if f == nil || !strings.Contains(f.Error(), want) {
		t.Errorf("%v", f)
	}
}

// A proc whose link was passed on by a plugin that dies says so.
func TestPluginKilledEndsItsRelayedLinks(t *testing.T) {
	for _, plane := range []string{"ring", "stream", "grpc"} {
		t.Run(plane, func(t *testing.T) {
			all := start(t, route(testJob("stranded", 1, 1), pinning(plane)))
			all[0].out.Line(t, "[0] waits")
			fd := launchtest.Pidfd(t, all[0].n.routes.Transport("tcp").Plugin.Status().PID)
			if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
				t.Fatal(err)
			}
			wantAll(t, all, "rank 0 on site alpha exited with status 9, after it had lost its link to rank 1 of site beta (client 1)")
			want := fmt.Sprintf("the plugin of transport tcp, which passes its bytes on (data plane %s), has died", plane)
			if said := all[0].err.String(); !strings.Contains(said, want) {
				t.Errorf("the proc does not say why")
			}
		})
	}
}

// A job does not go on without a link between two procs, even if no receive fails by that: what was
// on the link would be waited for.
func TestLostLinkEndsAJobThatWaitsForAnybody(t *testing.T) {
	all := start(t, route(testJob("expectant", 1, 1), pinning("stream")))
	all[0].out.Line(t, "[0] waits")
	fd := launchtest.Pidfd(t, all[0].n.routes.Transport("tcp").Plugin.Status().PID)
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		t.Fatal(err)
	}
	wantAll(t, all, "rank 0 on site alpha has lost its link to rank 1 of site beta (client 1): link to rank 1: link is broken: "+
		"the plugin of transport tcp, which passes its bytes on (data plane stream), has died or has lost the connection")
}

// A proc whose peer's plugin dies does not take that for the peer's end.
func TestPeersPluginKilled(t *testing.T) {
	for ours, theirs := range map[string]string{"fd": "stream", "stream": "ring", "ring": "stream"} {
		t.Run(ours+" to "+theirs, func(t *testing.T) {
			job := route(testJob("stranded", 1, 1), pinning(ours))
			job.Sites[1].Routes = []config.Route{pinning(theirs)}
			job.Sites[1].Routes[0].Site = "*"
			all := start(t, job)
			all[0].out.Line(t, "[0] waits")
			if err := unix.Kill(all[1].n.routes.Transport("tcp").Plugin.Status().PID, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			wantAll(t, all, "rank 0 on site alpha exited with status 9, after it had lost its link to rank 1 of site beta (client 1)")
			said := all[0].err.String()
			if want := "link to rank 1"; !strings.Contains(said, want) || !strings.Contains(said, "link is broken") || strings.Contains(said, "closed it") {
				t.Error("rank 0 takes it for the end of rank 1")
			}
		})
	}
}

// There is a listener for each list of planes that a route has, first the one for any.
func TestAcceptingPlanes(t *testing.T) {
	any := config.Route{Site: "*", Prefer: []string{"tcp"}, Direct: true}
	ring, stream := any, any
	ring.DataPlane, stream.DataPlane = []string{"ring"}, []string{"stream", "ring"}
	ring.Site = "beta"
	again, fd, memory := stream, any, any
	again.Site, fd.Site, fd.DataPlane, memory.DataPlane = "beta", "gamma", []string{"fd"}, []string{"peer-shm"}
	elsewhere := config.Route{Site: "gamma", Prefer: []string{"unix"}, Direct: true}
	for _, c := range []struct {
		name   string
		routes []config.Route
		want   string
	}{
		{"not pinned", []config.Route{any}, "[]"},
		{"not pinned for all", []config.Route{ring, any}, "[] [ring]"},
		{"the default is not pinned", []config.Route{ring}, "[] [ring]"},
		{"pinned", []config.Route{ring, stream, elsewhere}, "[ring] [stream ring]"},
		{"the same twice", []config.Route{stream, again}, "[stream ring]"},
		{"another transport's route", []config.Route{stream, elsewhere}, "[stream ring]"},
		{"planes that it has not", []config.Route{memory, stream}, "[stream ring]"},
		{"nothing that it has", []config.Route{memory, elsewhere}, "[]"},
		{"too many", []config.Route{fd, ring, stream, any}, "[] [fd] [ring]"},
	} {
		n := twoSites(t, c.routes...)
		tcp := n.routes.Transport("tcp")
		tcp.Transport = havingPlanes{tcp.Transport}
		if got := fmt.Sprint(routes.ListenerPlanes(n.opt.Site, tcp.Name, tcp.Capabilities().DataPlanes)); got != "["+c.want+"]" {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	n := twoSites(t, ring, any)
	if !n.routes.AllowsPlane(2, nil) || len(routes.DataPlanes(n.routes.RouteTo(2).DataPlane)) != 1 || routes.DataPlanes(n.routes.RouteTo(2).DataPlane)[0] != transports.PlaneRing {
		t.Errorf("%v", routes.DataPlanes(n.routes.RouteTo(2).DataPlane))
	}
}
