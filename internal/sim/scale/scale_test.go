package scale

import (
	"math/bits"
	"strings"
	"testing"
)

func measure(t *testing.T, clients, hosts, procs int) Report {
	t.Helper()
	r, err := Run(clients, hosts, procs, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range r.Operations {
		t.Logf("%d clients of %d hosts, %d procs: %+v", clients, hosts, procs, op)
	}
	t.Logf("%d bytes and %d of stack per proc, startup %v", r.PerProc, r.Stacks, r.Startup)
	return r
}

// TestGrowth: between sites nothing depends on the number of procs; inside sites depth grows like a
// tree's.
func TestGrowth(t *testing.T) {
	small, large := measure(t, 32, 1, 320), measure(t, 32, 1, 3200)
	for i, s := range small.Operations {
		l := large.Operations[i]
		same := s.Messages == l.Messages && s.PerSite == l.PerSite
		if s.Name == "split, pairs" { // half as many groups as procs do not fit into one packet
			same = l.Messages < 2*s.Messages
		}
		if !same || s.FarDepth != l.FarDepth {
			t.Errorf("%s: between sites %+v with 320 procs, %+v with 3200", s.Name, s, l)
		}
		if s.constructs() {
			grows(t, s, small.Procs, l, large.Procs)
		}
		// Up the tree, down the tree, and the site's master may be the last to learn of it.
		most := 3 * (1 + bits.Len(3200/32))
		if l.Name == distGraph { // twice, for the contexts and at the end, and two messages with their acknowledgements
			most = 2*most + 4
			fewLetters(t, s, small.Procs)
			fewLetters(t, l, large.Procs)
		}
		if l.Depth > most {
			t.Errorf("%s: %d messages deep inside a site, more than %d", l.Name, l.Depth, most)
		}
	}
}

// TestHosts: between hosts of a site as little depends on the number of procs as between
// sites.
func TestHosts(t *testing.T) {
	for _, c := range []struct {
		clients, hosts int
		operations     map[string][2]int // messages between hosts, between sites
	}{
		{1, 4, map[string][2]int{"barrier": {8, 0}, "bcast 8 B": {3, 0}, "allreduce 8 B": {8, 0}}},
		{2, 3, map[string][2]int{"barrier": {8, 2}, "bcast 8 B": {4, 1}, "allreduce 8 B": {8, 2}}},
		{3, 2, map[string][2]int{"barrier": {6, 6}, "bcast 8 B": {3, 2}, "allreduce 8 B": {6, 6}}}, // each site tells each other one
	} {
		for _, each := range []int{3, 12} {
			seen := 0
			for _, op := range measure(t, c.clients, c.hosts, c.clients*c.hosts*each).Operations {
				if want, ok := c.operations[op.Name]; ok {
					seen++
					if got := [2]int{op.Hosts, op.Messages}; got != want {
						t.Errorf("%s of %d sites of %d hosts of %d procs: %v messages between hosts and sites, want %v",
							op.Name, c.clients, c.hosts, each, got, want)
					}
				}
			}
			if seen != len(c.operations) {
				t.Errorf("%d operations were measured, not %d", seen, len(c.operations))
			}
		}
	}
}

// constructs reports whether the step makes communicators.
func (op Operation) constructs() bool { return op.Name == "dup" || strings.HasPrefix(op.Name, "split") }

// grows: communicators of all, or of regular parts of them, cost each proc a few messages, and no
// proc receives more than its place in the trees needs.
func grows(t *testing.T, s Operation, few int, l Operation, many int) {
	t.Helper()
	if s.All > 2*few+few/32 || l.All > 2*many+many/32 {
		t.Errorf("%s: %d messages of %d procs, %d of %d", l.Name, s.All, few, l.All, many)
	}
	depth := bits.Len(uint(many))
	if each := l.AllBytes / many; each > 512+16*depth {
		t.Errorf("%s: %d bytes for each of %d procs", l.Name, each, many)
	}
	// What members send comes to rank 0, in 8 bytes each; acknowledgements and headers are for its
	// children.
	if most := 8*many + 20*many/2 + 400*(depth+l.PerSite); l.MostBytes > most {
		t.Errorf("%s: a proc got %d bytes, more than %d", l.Name, l.MostBytes, most)
	}
}

// fewLetters: of a graph in which each member tells of one edge between two others
// each costs two letters, and everybody together twice what a barrier does.
func fewLetters(t *testing.T, op Operation, procs int) {
	t.Helper()
	if most := 6 * procs; op.All > most {
		t.Errorf("%s: %d messages of %d procs, more than %d", op.Name, op.All, procs, most)
	}
	if each := op.AllBytes / procs; each > 1200 {
		t.Errorf("%s: %d bytes for each of %d procs", op.Name, each, procs)
	}
	// Those of the trees, and messages with their acknowledgements.
	if most := 400 * (bits.Len(uint(procs)) + op.PerSite/10); op.MostBytes > most {
		t.Errorf("%s: a proc got %d bytes, more than %d", op.Name, op.MostBytes, most)
	}
}

// TestWorldOf4096 is about counts; how long it takes is for the benchmark and
// impi-sim to tell.
func TestWorldOf4096(t *testing.T) {
	r := measure(t, 2, 1, 4096)
	for _, op := range r.Operations {
		if op.constructs() {
			grows(t, op, r.Procs, op, r.Procs)
		}
		if op.Name == distGraph {
			fewLetters(t, op, r.Procs)
		}
	}
}

func BenchmarkWorldOf4096(b *testing.B) {
	for b.Loop() {
		r, err := Run(2, 1, 4096, func(string) {})
		if err != nil {
			b.Fatal(err)
		}
		for _, op := range r.Operations {
			if op.constructs() || op.Name == distGraph {
				b.ReportMetric(op.Took.Seconds(), strings.ReplaceAll(op.Name, ", ", "-")+"-s")
			}
		}
	}
}
