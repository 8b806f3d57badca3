package node

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/connmgr/direct"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/wireup"
)

// ticking starts a job of two sites, of which each line that is written makes a
// message go to and fro.
func ticking(t *testing.T, r config.Route) (all []*running, tick func()) {
	t.Helper()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); out.Close() })
	all = start(t, route(testJob("tick", 1, 1), r), func(o *Options) {
		if o.Site.Client == 0 {
			o.Stdin = in
		}
	})
	n := 0
	return all, func() {
		t.Helper()
		fmt.Fprintln(out, "go")
		all[0].out.Line(t, fmt.Sprintf("[0] tick %d", n))
		all[1].out.Line(t, fmt.Sprintf("[1] tick %d", n))
		n++
	}
}

func (r *running) reload(force bool) links.Answer {
	return r.n.control.Answer(context.Background(), links.Request{Op: links.OpReload, Transport: "tcp", Force: force})
}

// reloadOf replaces the plugin of any transport, unless that loses links.
func (r *running) reloadOf(transport string) links.Answer {
	return r.n.control.Answer(context.Background(), links.Request{Op: links.OpReload, Transport: transport})
}

// Links whose bytes pass through a plugin go on in its next process; those that
// are in the procs' hands do not notice.
func TestReloadOfAPluginInUse(t *testing.T) {
	for plane, resuming := range map[string]int{"fd": 0, "stream": 1} {
		t.Run(plane, func(t *testing.T) {
			all, tick := ticking(t, config.Route{Prefer: []string{"tcp"}, Direct: true, DataPlane: []string{plane}, Resume: true})
			tick()
			for range 2 {
				for _, r := range all {
					a := r.reload(false)
					if a.Error != "" || a.Reload.Resuming != resuming || a.Reload.Lost != 0 ||
						a.Reload.After.PID == a.Reload.Before.PID || a.Reload.Site != r.n.opt.Site.Name {
						t.Fatalf("%s: %+v", a.Error, a.Reload)
					}
					tick()
				}
			}
			if got := resumes(all, direct.Pair{Local: 0, Peer: 1}, direct.Pair{Local: 1, Peer: 0}); got < 4*resuming {
				t.Errorf("%d resumes", got)
			}
		})
	}
}

// What would break a job is not done by mistake.
func TestReloadThatWouldLoseLinks(t *testing.T) {
	all, tick := ticking(t, config.Route{Prefer: []string{"tcp"}, Direct: true, DataPlane: []string{"stream"}})
	tick()
	pid := all[0].n.routes.Transport("tcp").Plugin.Status().PID
	if a := all[0].reload(false); !strings.Contains(a.Error, "links would be lost") || a.Reload != nil {
		t.Errorf("%+v", a)
	}
	if a := all[0].n.control.Answer(context.Background(), links.Request{Op: links.OpReload, Transport: "pigeon"}); !strings.Contains(a.Error, `"pigeon"`) {
		t.Errorf("%+v", a)
	}
	if now := all[0].n.routes.Transport("tcp").Plugin.Status().PID; now != pid {
		t.Errorf("process %d was replaced by %d", pid, now)
	}
	tick()
	if a := all[0].reload(true); a.Error != "" || a.Reload.Lost != 1 {
		t.Errorf("%+v", a)
	}
	for i, f := range end(all) {
		if f == nil {
			t.Errorf("site %d has lost nothing", i)
		}
	}
}

// A link to another world resumes if both jobs want it, so that a plugin that has its bytes can be
// replaced; if not, that is not done by mistake either.
func TestReloadThatWouldLoseLinksToAnotherWorld(t *testing.T) {
	stream := func(resume bool) func(*config.Job) {
		return func(j *config.Job) {
			route(j, config.Route{Prefer: []string{"tcp"}, Direct: true, DataPlane: []string{"stream"}, Resume: resume})
		}
	}
	c, d := startVisitor(t, "alfa", stream(true)), startVisitor(t, "beta", stream(true))
	c.meets(d)
	c.wants(wireup.KindLink, 0, "")
	d.wants(wireup.KindLink, 0, "")
	if x := c.r.reload(false); x.Error != "" || x.Reload.Lost != 0 || x.Reload.Resuming != 1 {
		t.Errorf("with one that resumes: %+v", x)
	}
	a, b := startVisitor(t, "alfa", stream(true)), startVisitor(t, "beta", stream(false))
	a.meets(b)
	a.wants(wireup.KindLink, 0, "")
	b.wants(wireup.KindLink, 0, "")
	if x := a.r.reload(false); !strings.Contains(x.Error, "links would be lost") || x.Reload != nil {
		t.Errorf("%+v", x)
	}
	a.say(wireup.Message{Kind: wireup.KindForget, Meeting: &wireup.OtherWorld{World: b.world.World[:]}})
	a.openPort(0) // and has an answer: the node has heard that before
	if x := a.r.reload(false); x.Error != "" || x.Reload.Lost != 0 {
		t.Errorf("without a link: %+v", x)
	}
}
