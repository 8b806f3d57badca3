package node

import (
	"os"
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/agent"
)

func onDemand(o *Options) { o.OnDemand = agent.Always }

// TestChannelsOnDemand: hosts of several sites, with channels that resume and others, make each
// channel when a packet needs it, and end in order.
func TestChannelsOnDemand(t *testing.T) {
	for name, r := range map[string]config.Route{"once": {Prefer: []string{"tcp"}}, "resumed": {Prefer: []string{"tcp"}, Resume: true}} {
		t.Run(name, func(t *testing.T) {
			all := flat(startApart(t, route(clusterJob("says", 2, 3, 2), r), onDemand))
			wantNone(t, all)
			for i, n := range all {
				if s := n.err.String(); !strings.Contains(s, "on_demand=true") {
					t.Errorf("node %d has made no channel on demand:\n%s", i, s)
				}
			}
		})
	}
}

// TestChannelsThatAreCutOnDemand: channels that were made on demand are dialled again.
func TestChannelsThatAreCutOnDemand(t *testing.T) {
	all := start(t, channelJob("chat", 10e3, 1, 1), onDemand)
	wantNone(t, all)
	if said := all[0].err.String() + all[1].err.String(); !strings.Contains(said, "a channel is resumed") {
		t.Errorf("nothing was shown:\n%s", said)
	}
}

// TestHostUnreachedOnDemand: a host that does not listen any more is named when a packet is for it,
// with both addresses. Both procs read until nobody can be reached, and then go to Finalize's
// barrier.
func TestHostUnreachedOnDemand(t *testing.T) {
	job := route(testJob("cat", 1, 1), config.Route{Prefer: []string{"tcp"}})
	var inputs []*os.File
	for i := range job.Sites {
		job.Sites[i].Program.Stdin = i
	}
	all := start(t, job, func(o *Options) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		o.OnDemand, o.Stdin, inputs = agent.Always, r, append(inputs, w)
	})
	for _, n := range all {
		select {
		case <-n.n.ready:
		case <-n.done:
			t.Fatal(n.failure)
		}
		for _, h := range n.n.hosts {
			if err := h.Channel.Close(); err != nil {
				t.Fatal(err)
			}
			for _, l := range h.Direct {
				_ = l.Close()
			}
		}
	}
	for _, w := range inputs {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	named := 0
	for i, f := range end(all) {
		switch {
		case f == nil:
			t.Errorf("site %d has not failed", i)
		case strings.Contains(f.Text, "127.0.0.2") && strings.Contains(f.Text, "127.0.0.3") && strings.Contains(f.Text, "was not reached: a packet waits for it"):
			named++
		}
	}
	if named == 0 {
		t.Error("nobody names who was not reached")
	}
}

// TestChannelsOnDemandOfOneNode: both ends of a channel are hosts of one node.
func TestChannelsOnDemandOfOneNode(t *testing.T) {
	job := route(clusterJob("says", 2, 3, 2), config.Route{Prefer: []string{"tcp"}})
	wantNone(t, start(t, job, onDemand))
}
