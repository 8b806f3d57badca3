package coll

import (
	"bytes"
	"fmt"
	"math"
	"math/bits"
	"testing"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/allocs"
)

// shape is a job of sites of as many hosts with as many processes each.
type shape struct{ sites, hosts, procs int }

func (s shape) String() string { return fmt.Sprintf("%dx%dx%d", s.sites, s.hosts, s.procs) }

// How ranks are placed: host after host, dealt out to the hosts of each site, dealt
// out to sites and then to hosts.
const (
	inOrder = iota
	dealtToHosts
	dealtToAll
)

var placements = []string{"in order", "dealt to hosts", "dealt to all"}

// job makes the communicator of all processes of a shape.
func (s shape) job(t testing.TB, placement int, p Profile) *job {
	n := s.sites * s.hosts * s.procs
	clients, hosts := make([]wire.ClientRank, n), make([]wire.ClientRank, 100+n)
	for i := range n {
		site, host := i/(s.hosts*s.procs), i/s.procs%s.hosts
		switch placement {
		case dealtToHosts:
			host = i % s.hosts
		case dealtToAll:
			site, host = i%s.sites, i/s.sites%s.hosts
		}
		clients[i], hosts[100+i] = wire.ClientRank(site), wire.ClientRank(site*s.hosts+host)
	}
	p.Hosts = comm.NewClients(hosts)
	return newJob(t, clients, p, nil, uint64(n))
}

// rounds is how many rounds of doubling there are over n.
func rounds(n int) int { return bits.Len(uint(n - 1)) }

// doubling is how many messages an Allreduce by doubling over n has.
func doubling(n int) int {
	power := 1 << (bits.Len(uint(n)) - 1)
	return 2*(n-power) + power*rounds(power)
}

// scanning is how many messages a Scan by doubling over n has.
func scanning(n int) (total int) {
	for d := 1; d < n; d *= 2 {
		total += n - d
	}
	return total
}

// TestThreeLevels counts the messages between hosts of a site and between sites. That
// the results are right is everywhere's to test, and TestWideModel's.
func TestThreeLevels(t *testing.T) {
	type count func(m, h int) int // of m sites of h hosts each
	// one is a message up or down for each host but one of each site, and for each
	// site but one.
	one := func(times int) (hosts, sites count) {
		return func(m, h int) int { return times * m * (h - 1) }, func(m, _ int) int { return times * (m - 1) }
	}
	up, upSites := one(1)
	upDown, upDownSites := one(2)
	pairs := func(m, _ int) int { return m * (m - 1) }
	before := func(m, _ int) int { return m * (m - 1) / 2 }
	either := func(alone, several count) count {
		return func(m, h int) int {
			if m == 1 {
				return alone(m, h)
			}
			return several(m, h)
		}
	}
	all := func(_, h int) int { return h * (h - 1) }
	chain := func(_, h int) int {
		if h <= ours.MaxLinear {
			return h - 1
		}
		return scanning(h) + h - 1
	}
	lower := func(m, h int) int { return m*chain(m, h) + (m-1)*(h-1) } // what comes from the sites before goes to each host
	for _, c := range []struct {
		name         string
		ordered      bool // only where the ranks of each host follow each other
		hosts, sites count
		plan         func(n int) func(r int, p *Planner, s *Schedule) error
	}{
		{"barrier", false, either(func(_, h int) int { return h * rounds(h) }, upDown), pairs,
			func(int) func(int, *Planner, *Schedule) error { return barrier }},
		{"bcast", false, up, upSites, func(n int) func(int, *Planner, *Schedule) error { return bcast(16, n-2) }},
		{"reduce", false, up, upSites, func(n int) func(int, *Planner, *Schedule) error { return reduction(8, n/2, datatype.Sum) }},
		{"allreduce", false, either(func(_, h int) int { return doubling(h) }, upDown), pairs,
			func(int) func(int, *Planner, *Schedule) error {
				return func(_ int, p *Planner, s *Schedule) error { return allreduceOf(p, s, make([]byte, 64), datatype.Sum) }
			}},
		{"allreduce of what does not commute", true, upDown, upDownSites,
			func(int) func(int, *Planner, *Schedule) error {
				return func(_ int, p *Planner, s *Schedule) error { return allreduceOf(p, s, make([]byte, 64), affine) }
			}},
		{"reduce of what does not commute", true, up, upSites,
			func(int) func(int, *Planner, *Schedule) error { return reduction(8, 0, affine) }},
		{"gather", false, up, upSites, func(n int) func(int, *Planner, *Schedule) error {
			return func(_ int, p *Planner, s *Schedule) error {
				return p.Gather(s, make([]byte, 2000), make([]byte, 2000*n), datatype.Byte, 1)
			}
		}},
		{"scatter", false, up, upSites, func(n int) func(int, *Planner, *Schedule) error {
			return func(_ int, p *Planner, s *Schedule) error {
				return p.Scatter(s, make([]byte, 2000*n), make([]byte, 2000), datatype.Byte, n-1)
			}
		}},
		{"gatherv", false, either(up, func(int, int) int { return -1 }), upSites, func(n int) func(int, *Planner, *Schedule) error {
			return func(r int, p *Planner, s *Schedule) error {
				counts := make([]int, n)
				for i := range counts {
					counts[i] = 10 + i
				}
				return p.Gatherv(s, make([]byte, counts[r]), make([]byte, 10*n+n*(n-1)/2), counts, nil, datatype.Byte, 1)
			}
		}},
		{"allgather", false, either(func(m, h int) int {
			if h <= ours.MaxLinear {
				return all(m, h)
			}
			return upDown(m, h)
		}, upDown), pairs, func(n int) func(int, *Planner, *Schedule) error {
			return func(_ int, p *Planner, s *Schedule) error {
				return p.Allgather(s, nil, make([]byte, 16*n), datatype.Byte)
			}
		}},
		{"allgatherv", false, either(all, upDown), pairs, func(n int) func(int, *Planner, *Schedule) error {
			return func(_ int, p *Planner, s *Schedule) error {
				counts := make([]int, n)
				for i := range counts {
					counts[i] = 1 + i%3
				}
				return p.Allgatherv(s, nil, make([]byte, 3*n), counts, nil, datatype.Byte)
			}
		}},
		{"alltoall", false, func(m, h int) int {
			if m == 1 {
				return all(m, h)
			}
			return m * (all(m, h) + 2*(h-1))
		}, pairs, func(n int) func(int, *Planner, *Schedule) error {
			return func(_ int, p *Planner, s *Schedule) error {
				return p.Alltoall(s, nil, make([]byte, 16*n), datatype.Byte)
			}
		}},
		{"reduce_scatter", false, either(all, upDown), pairs, func(n int) func(int, *Planner, *Schedule) error {
			return func(_ int, p *Planner, s *Schedule) error {
				return p.ReduceScatterBlock(s, nil, make([]byte, 16*n), datatype.Byte, datatype.BXor)
			}
		}},
		{"scan", true, lower, before, func(int) func(int, *Planner, *Schedule) error {
			return func(_ int, p *Planner, s *Schedule) error {
				return p.Scan(s, nil, make([]byte, 64), datatype.Uint64, affine)
			}
		}},
		{"exscan", true, func(m, h int) int { return lower(m, h) + m*(h-1) }, before, func(int) func(int, *Planner, *Schedule) error {
			return func(_ int, p *Planner, s *Schedule) error {
				return p.Exscan(s, nil, make([]byte, 64), datatype.Uint64, affine)
			}
		}},
	} {
		for _, shape := range []shape{{1, 2, 3}, {1, 3, 4}, {1, 5, 2}, {1, 9, 3}, {2, 1, 4}, {2, 2, 3}, {2, 3, 4}, {3, 2, 2}, {5, 2, 3}} {
			for placement, how := range placements {
				if c.ordered && placement != inOrder {
					continue
				}
				j := shape.job(t, placement, ours)
				j.run(c.plan(len(j.clients)))
				hosts, sites := c.hosts(shape.sites, shape.hosts), c.sites(shape.sites, shape.hosts)
				if got := j.levels[1].messages; hosts >= 0 && got != hosts {
					t.Errorf("%s over %v, ranks %s: %d messages between hosts, want %d", c.name, shape, how, got, hosts)
				}
				if got := j.levels[2].messages; got != sites && hosts >= 0 {
					t.Errorf("%s over %v, ranks %s: %d messages between sites, want %d", c.name, shape, how, got, sites)
				}
			}
		}
	}
}

// TestForeignSitesSeeNoHosts compares what goes between clients with what goes there
// if hosts are not known: IMPI's messages do not depend on them.
func TestForeignSitesSeeNoHosts(t *testing.T) {
	s := shape{3, 3, 3}
	for placement, how := range placements {
		j := s.job(t, placement, usual)
		n := len(j.clients)
		flat := newJob(t, j.clients, usual, nil, 3)
		for name, plan := range map[string]func(r int, p *Planner, s *Schedule) error{
			"barrier": barrier, "bcast": bcast(5, 7), "reduce": reduction(3, 11, datatype.Sum), "ordered reduce": reduction(3, 11, affine),
			"allreduce": func(_ int, p *Planner, s *Schedule) error { return allreduceOf(p, s, make([]byte, 64), datatype.Sum) },
			"gather": func(_ int, p *Planner, s *Schedule) error {
				return p.Gather(s, make([]byte, 6), make([]byte, 6*n), datatype.Byte, 5)
			},
			"allgather": func(_ int, p *Planner, s *Schedule) error {
				return p.Allgather(s, nil, make([]byte, 8*n), datatype.Byte)
			},
			"scan": func(_ int, p *Planner, s *Schedule) error {
				return p.Scan(s, nil, make([]byte, 64), datatype.Uint64, datatype.Sum)
			},
		} {
			j.run(plan)
			flat.run(plan)
			if a, b := bySender(j.trace), bySender(flat.trace); fmt.Sprint(a) != fmt.Sprint(b) {
				t.Errorf("%s, ranks %s: with hosts %v, without %v", name, how, a, b)
			}
			if name == "barrier" && (j.levels[1].messages != 2*3*2 || flat.levels[1].messages != 0) {
				t.Errorf("the clients of the barrier have %d messages between hosts", j.levels[1].messages)
			}
		}
	}
}

// bySender has the messages of a trace in the order of each sender.
func bySender(trace []string) map[int][]string {
	m := map[int][]string{}
	for _, line := range trace {
		var from int
		fmt.Sscanf(line, "%d->", &from)
		m[from] = append(m[from], line)
	}
	return m
}

// TestLongBetweenHosts has a long vector cross the border of a host about once in each
// direction, however many processes the host has and however they are numbered.
func TestLongBetweenHosts(t *testing.T) {
	const size = 1 << 18
	for _, shape := range []shape{{1, 2, 4}, {1, 3, 8}, {1, 6, 4}, {2, 3, 4}, {2, 2, 2}} {
		for placement, how := range placements {
			for name, plan := range map[string]func(r int, p *Planner, s *Schedule) error{
				"allreduce": func(_ int, p *Planner, s *Schedule) error {
					return allreduceOf(p, s, make([]byte, size), datatype.Sum)
				},
				"bcast": bcast(size/4, 1),
				"reduce": func(_ int, p *Planner, s *Schedule) error {
					return p.Reduce(s, make([]byte, size), make([]byte, size), datatype.Uint64, datatype.Sum, 1)
				},
			} {
				j := shape.job(t, placement, ours)
				j.run(plan)
				if most := (shape.hosts + shape.sites) * size; j.most > min(most, 4*size) {
					t.Errorf("%s over %v, ranks %s: a host sends %.2f times the vector", name, shape, how, float64(j.most)/size)
				}
				if got, most := j.levels[1].bytes, 2*shape.sites*shape.hosts*size; got > most {
					t.Errorf("%s over %v, ranks %s: %.2f times the vector between hosts", name, shape, how, float64(got)/size)
				}
			}
		}
	}
}

// TestRootOnlySends: nothing is received into the root's buffer, which other threads of
// its program may read meanwhile, though it may be an agent of stripes that others carry.
func TestRootOnlySends(t *testing.T) {
	for _, shape := range []shape{{1, 3, 4}, {2, 3, 4}, {3, 2, 2}} {
		for placement, how := range placements {
			j := shape.job(t, placement, ours)
			for root, p := range j.planners {
				var s Schedule
				buf := make([]byte, 1<<17)
				if err := p.Bcast(&s, buf, datatype.Int32, root); err != nil {
					t.Fatal(err)
				}
				for steps, err := s.Next(); len(steps) > 0; steps, err = s.Next() {
					for _, step := range steps {
						if err != nil || Overlap(step.Dst, buf) {
							t.Fatalf("%v, ranks %s: root %d has a %v into its buffer (%v)", shape, how, root, step.Action, err)
						}
					}
				}
			}
		}
	}
}

// TestAgents: the processes of each host share the stripes.
func TestAgents(t *testing.T) {
	for placement, how := range placements {
		p := (shape{2, 3, 4}).job(t, placement, ours).planners[0]
		in, ok := p.begin(new(Schedule), datatype.Byte).inside()
		if !ok || p.sites.stripes != maxStripes {
			t.Fatalf("ranks %s: %d stripes", how, p.sites.stripes)
		}
		for host := range 3 {
			stripes := map[int]int{}
			for j := range maxStripes {
				agent := in.agent(host, j)
				if stripes[agent]++; stripes[agent] > 3 || in.m.Number(agent) != host {
					t.Errorf("ranks %s: place %d deals with %d stripes of host %d", how, agent, stripes[agent], host)
				}
			}
		}
	}
}

// TestHostsSameBits sums and multiplies what depends on the order, and where machines
// may differ each element is computed by one process.
func TestHostsSameBits(t *testing.T) {
	for _, shape := range []shape{{1, 2, 3}, {1, 3, 2}, {1, 5, 2}, {2, 2, 2}, {3, 3, 2}} {
		for placement := range placements {
			for _, count := range []int{2, 1 << 14} {
				for _, k := range []datatype.Kind{datatype.Float64, datatype.Complex128} {
					j := shape.job(t, placement, ours)
					recv := make([][]float64, len(j.clients))
					j.run(func(r int, p *Planner, s *Schedule) error {
						recv[r] = make([]float64, count)
						for i := range recv[r] {
							recv[r][i] = math.Exp(8*j.rng.Float64()-4) * float64(1-2*(r%2))
						}
						op := datatype.Sum
						if k == datatype.Complex128 {
							op = datatype.Prod
						}
						return p.Allreduce(s, nil, datatype.Bytes(recv[r]), k, op)
					})
					for r := range recv {
						if !bytes.Equal(datatype.Bytes(recv[r]), datatype.Bytes(recv[0])) {
							t.Fatalf("%d elements of %v over %v: ranks 0 and %d differ", count, k, shape, r)
						}
					}
				}
			}
		}
	}
}

// TestOneHostHasNoLevel plans as ever where hosts make no difference.
func TestOneHostHasNoLevel(t *testing.T) {
	for _, shape := range []shape{{1, 1, 5}, {2, 1, 3}, {1, 5, 1}, {2, 3, 1}} {
		if p := shape.job(t, inOrder, ours).planners[0]; p.betweenHosts != nil || p.scattered != (shape.hosts > 1) {
			t.Errorf("%v: hosts matter", shape)
		}
	}
	if p := (shape{1, 2, 2}).job(t, inOrder, ours).planners[0]; p.betweenHosts == nil {
		t.Error("hosts do not matter")
	}
}

// A planner of many hosts takes some words for each, and nothing for each process.
func TestMemoryOfHosts(t *testing.T) {
	cost := func(hosts, procs int) int {
		table := make([]wire.ClientRank, hosts*procs)
		for i := range table {
			table[i] = wire.ClientRank(i / procs)
		}
		p := ours
		p.Hosts = comm.NewClients(table)
		c, err := comm.New(comm.Spec{Group: comm.NewGroup(0, len(table)), Self: comm.Proc(len(table) / 2),
			Clients: comm.NewClients(make([]wire.ClientRank, len(table)))})
		if err != nil {
			t.Fatal(err)
		}
		c.Masters()
		return int(allocs.BytesExact(func() { NewPlanner(c, p) }))
	}
	cost(2, 2) // the first measurement makes the runtime's own memory
	few, many := cost(1024, 2), cost(1024, 128)
	t.Logf("planner of 1024 hosts: %d bytes with 2 processes each, %d with 128", few, many)
	if many > few+256 || many > 256*1024 {
		t.Errorf("planner of 1024 hosts: %d bytes with 2 processes each, %d with 128", few, many)
	}
}

// TestMembersWithoutItems: who has no items may not know the kind of those of others, whose length
// in external32 differs from the native one.
func TestMembersWithoutItems(t *testing.T) {
	for placement := range placements {
		j := shape{1, 2, 3}.job(t, placement, usual)
		for none := range 6 {
			counts, displs := []int{3, 3, 3, 3, 3, 3}, []int{0, 3, 6, 9, 12, 15}
			counts[none] = 0
			kind := func(r int) datatype.Kind {
				if r == none && r != 0 {
					return datatype.Byte
				}
				return datatype.Long
			}
			recv := gaps(18)
			got := make([][]int64, 6)
			j.run(func(r int, p *Planner, s *Schedule) error {
				if r == 0 {
					return p.Gatherv(s, b64(data(r, counts[r])), b64(recv), counts, displs, kind(r), 0)
				}
				return p.Gatherv(s, b64(data(r, counts[r])), nil, nil, nil, kind(r), 0)
			})
			equal(t, "gatherv", none, recv, spread(counts, displs, 18))
			j.run(func(r int, p *Planner, s *Schedule) error {
				got[r] = make([]int64, counts[r])
				if r == 0 {
					return p.Scatterv(s, b64(spread(counts, displs, 18)), counts, displs, b64(got[r]), kind(r), 0)
				}
				return p.Scatterv(s, nil, nil, nil, b64(got[r]), kind(r), 0)
			})
			for r := range counts {
				equal(t, "scatterv", r, got[r], data(r, counts[r]))
			}
		}
	}
}
