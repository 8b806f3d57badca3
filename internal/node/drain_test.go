package node

import (
	"context"
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/links"
)

// drain asks a node about a plugin of tcp.
func (r *running) drain(t *testing.T, op links.Op) links.Draining {
	t.Helper()
	a := r.n.control.Answer(context.Background(), links.Request{Op: op, Transport: "tcp"})
	if a.Error != "" || a.Drain == nil || len(a.Drain.Transports) != 1 {
		t.Fatalf("%s: %+v", op, a)
	}
	return a.Drain.Transports[0]
}

// drained drains tcp at a node until nothing moves.
func (r *running) drained(t *testing.T, tick func()) links.Draining {
	t.Helper()
	x := r.drain(t, links.OpDrain)
	for x.Moving > 0 {
		tick() // a proc that sleeps in a receive hears of it as well
		x = r.drain(t, links.OpDrained)
	}
	return x
}

// transportOf is the transport of the link between the two procs, as a node has it.
func (r *running) transportOf(local, peer int) string {
	for _, v := range r.n.control.Describe(context.Background(), links.Request{All: true}).Views {
		if v.Local == local && v.Peer == peer {
			return v.Transport
		}
	}
	return ""
}

// TestDrain: links leave a plugin for another transport without loss, whichever end has dialled
// them, new ones do without it at both ends, and the process can be replaced while nothing uses it.
func TestDrain(t *testing.T) {
	for i, at := range []string{"alpha", "beta"} {
		t.Run(at, func(t *testing.T) {
			all, tick := ticking(t, config.Route{Prefer: []string{"tcp", "unix"}, Direct: true, DataPlane: []string{"stream"}, Resume: true})
			tick()
			if x := all[i].drain(t, links.OpDrained); x.Drained || x.InUse() {
				t.Errorf("before: %+v", x)
			}
			if x := all[i].drained(t, tick); !x.Drained || x.InUse() {
				t.Errorf("drained: %+v", x)
			}
			tick()
			for k, r := range all {
				if log := r.err.String(); strings.Contains(log, "is lost and dialled again") || strings.Contains(log, "a direct link is resumed: ") {
					t.Errorf("site %d logs a drain as a fault:\n%s", k, log)
				}
			}
			if by := all[i].transportOf(i, 1-i); by != "unix" {
				t.Errorf("the link is by %q", by)
			}
			for k, r := range all {
				if err := r.probe("tcp", k, 1-k); err == nil {
					t.Errorf("site %d makes a link by tcp", k)
				}
				if err := r.probe("unix", k, 1-k); err != nil {
					t.Errorf("site %d: %v", k, err)
				}
			}
			if a := all[i].reload(false); a.Error != "" || a.Reload.Resuming != 0 || a.Reload.Lost != 0 {
				t.Errorf("%s: %+v", a.Error, a.Reload)
			}
			tick()
			if x := all[i].drain(t, links.OpUndrain); x.Drained {
				t.Errorf("undrained: %+v", x)
			}
			for k, r := range all {
				if err := r.probe("tcp", k, 1-k); err != nil {
					t.Errorf("site %d, undrained: %v", k, err)
				}
			}
			tick()
		})
	}
}

// TestDrainWithoutAnotherWay: links that have no other transport stay, and are resumed by the
// plugin's next process though it is drained; those that are not resumed are counted.
func TestDrainWithoutAnotherWay(t *testing.T) {
	for _, resume := range []bool{true, false} {
		all, tick := ticking(t, config.Route{Prefer: []string{"tcp"}, Direct: true, DataPlane: []string{"stream"}, Resume: resume})
		tick()
		x := all[0].drained(t, tick)
		if x.Waiting+x.Fixed != 1 || (x.Waiting == 1) != resume || !x.InUse() {
			t.Errorf("resume = %t: %+v", resume, x)
		}
		if resume {
			if a := all[0].reload(false); a.Error != "" || a.Reload.Resuming != 1 {
				t.Errorf("%s: %+v", a.Error, a.Reload)
			}
		}
		tick()
	}
}

// TestDrainOfLinksToOtherWorlds: they stay with the plugin, and are counted.
func TestDrainOfLinksToOtherWorlds(t *testing.T) {
	_, shared := sharedNames(t)
	var all [2]*running
	for i, pairs := range [][]string{{portVariable, "opens", "MEET_END", "hang"}, {"MEET_END", "hang"}} {
		job := heatJob(shared, "holds", 1, pairs...)
		all[i] = start(t, route(job, config.Route{Prefer: []string{"tcp"}, Direct: true, DataPlane: []string{"stream"}}))[0]
	}
	for _, r := range all {
		r.out.Line(t, "[0] met")
	}
	if x := all[0].drain(t, links.OpDrain); x.ToWorlds != 1 || !x.InUse() {
		t.Errorf("drained: %+v", x)
	}
	for _, r := range all {
		r.cancel(context.Canceled)
		<-r.done
	}
}

// TestDrainOfNothing: what is not there is said.
func TestDrainOfNothing(t *testing.T) {
	all, _ := ticking(t, config.Route{Prefer: []string{"tcp"}, Direct: true})
	<-all[0].n.ready
	for transport, want := range map[string]string{"": "name one by -transport: tcp", "pigeon": `no plugin of transport "pigeon"`} {
		if a := all[0].n.control.Answer(context.Background(), links.Request{Op: links.OpDrain, Transport: transport}); !strings.Contains(a.Error, want) {
			t.Errorf("%q: %+v", transport, a)
		}
	}
}

// TestStatusWhileDrained: a node says that a transport is drained. If it cannot ask another site
// for that reason, which it tried for each of its hosts, and that is of a release that it cannot
// ask over channels, it says it once.
func TestStatusWhileDrained(t *testing.T) {
	job := route(testJob("linked", 1, 2), config.Route{Prefer: []string{"tcp"}, Direct: true})
	job.Sites[1].Hosts = []config.Host{{Address: job.Sites[1].Hosts[0].Address, Procs: 1}, {Address: job.Sites[1].Hosts[0].Address, Procs: 1}}
	job.Sites[1].Labels.Versions = manyVersions()
	all := start(t, job)
	_, _ = survey(t, all, links.Request{})
	all[0].drain(t, links.OpDrain)
	a := all[0].n.control.Answer(context.Background(), links.Request{Op: links.OpLinks, Sites: true})
	if a.Node == nil || len(a.Node.Transports) != 1 || !a.Node.Transports[0].Drained {
		t.Errorf("%+v", a.Node)
	}
	const want = "not asked: only a transport leads there that is drained here, tcp (impi-node undrain ends that), and its release of impi cannot be asked over the agents' channel: run the command there too"
	if len(a.Others) != 1 || a.Others[0].Error != want || !a.Others[0].NotAsked {
		t.Errorf("%+v", a.Others)
	}
}
