package scale

import (
	"math/bits"
	"testing"
	"time"

	"github.com/openimpi/impi/core/agent"
)

// TestHostsGrowth: with more hosts a head receives no more for each of them, the tree's depth grows
// like a logarithm, and simulated time with the depth.
func TestHostsGrowth(t *testing.T) {
	const sites, procs = 2, 16
	for _, c := range []struct{ hosts, depth int }{{1, 0}, {32, 1}, {33, 1}, {34, 2}, {256, 2}, {1024, 2}, {1100, 3}} {
		r, err := Hosts(sites, c.hosts, procs)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v", r)
		if r.Depth != c.depth {
			t.Errorf("%d hosts: the farthest is %d away from the head, not %d", c.hosts, r.Depth, c.depth)
		}
		if most := bits.Len(uint(sites * c.hosts)); r.Channels != sites*c.hosts-1 && (sites*c.hosts <= agent.MaxAllChannelsHosts || r.Channels > most) {
			t.Errorf("%d hosts: one makes %d channels at the start, more than %d", c.hosts, r.Channels, most)
		}
		for what, x := range map[string]struct{ got, each int }{
			"messages to the head":          {r.HeadMessages, 3}, // questions for the parent's address, and what the head's children pass on
			"bytes to the head":             {r.HeadIn, 260 + 4*procs},
			"messages of both sites":        {r.Messages, sites * 8},
			"bytes of the job":              {r.Job, sites * (150 + 5*procs)},
			"bytes from the server":         {r.Server, sites * (40 + 150*procs)},
			"bytes that the head hands out": {r.HeadOut, 32*sites*(150+5*procs) + 100},
		} {
			if x.got > x.each*c.hosts+1000 {
				t.Errorf("%d hosts: %d %s, more than %d for each host", c.hosts, x.got, what, x.each)
			}
		}
		// Connect, ask for the parent and be accepted by it; then the parts.
		if most := inSite + 50*time.Millisecond + time.Duration(6*c.depth)*inSite; r.Gathered > most {
			t.Errorf("%d hosts: the head knows them after %v, not %v", c.hosts, r.Gathered, most)
		}
		if took, most := r.Started-r.Joined, time.Duration(c.depth)*inSite+time.Microsecond; took > most {
			t.Errorf("%d hosts: the job takes %v to the last of them, not %v", c.hosts, took, most)
		}
	}
}

// TestHostsMemory: a host keeps one table of the job, with few bytes for each host and none for
// procs of ours.
func TestHostsMemory(t *testing.T) {
	for _, x := range []struct{ hosts, procs int }{{64, 32}, {256, 32}, {64, 512}} {
		r, err := Hosts(2, x.hosts, x.procs)
		if err != nil {
			t.Fatal(err)
		}
		if most := 5_000 + 2*x.hosts*230; r.JobHeap+r.Table > most {
			t.Errorf("%d hosts of %d procs: a host keeps %d bytes of the job, and %d for its procs too, more than %d", x.hosts, x.procs, r.JobHeap, r.Table, most)
		}
		if most := 30_000 + 450*x.procs + 2*x.hosts*50; r.AgentHeap > most {
			t.Errorf("%d hosts of %d procs: the agent of a host keeps %d bytes, more than %d", x.hosts, x.procs, r.AgentHeap, most)
		}
	}
}
