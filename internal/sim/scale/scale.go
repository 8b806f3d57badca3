// Package scale simulates jobs that are larger than any machine of ours, and measures what grows
// with them: messages between sites, depth, memory.
package scale

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/internal/sim/job"
	"github.com/openimpi/impi/internal/sim/kernel"
)

// Depth follows from virtual time: a message between sites takes far, one inside a site takes near
// for each of the two links through the agent, and everything else takes almost no time.
const (
	far  = time.Second
	near = time.Millisecond
)

// Operation is the measurement of one collective.
type Operation struct {
	Name     string `json:"name"`
	Messages int    `json:"messages"`      // packets between sites, in all
	PerSite  int    `json:"per_site"`      // maximum packets between sites that one site sent and received
	FarDepth int    `json:"far_depth"`     // longest chain of messages between sites
	Depth    int    `json:"near_depth"`    // longest chain of messages inside sites up to the end
	Bytes    int    `json:"bytes_between"` // bytes between sites
	Hosts    int    `json:"between_hosts"` // packets between hosts of one site, in all

	All       int           `json:"messages_all"` // packets that procs sent, in all
	AllBytes  int           `json:"bytes_all"`
	MostBytes int           `json:"bytes_most"` // maximum bytes that one proc received
	Took      time.Duration `json:"took_ns"`    // real time, all procs together
}

// Report is the result of a run.
type Report struct {
	Clients int `json:"clients"`
	Procs   int `json:"procs"`

	Startup     time.Duration `json:"startup_ns"`      // real time until the first site has finished, with the work of all sites and of the server
	StartupSent int           `json:"startup_bytes"`   // bytes that the server sends to each client
	PerProc     int           `json:"bytes_per_proc"`  // heap bytes, after the first collective: engine, communicators, links of the simulator
	Stacks      int           `json:"stacks_per_proc"` // bytes of coroutine stacks
	Events      uint64        `json:"events"`
	Elapsed     time.Duration `json:"elapsed_ns"`

	Operations []Operation `json:"operations"`
}

// steps are the collectives in their order. Each is done twice: the first call makes plans and
// memory that the second one reuses.
var steps = []struct {
	name string
	call func(c *mpi.Comm) error
}{
	{"barrier", func(c *mpi.Comm) error { return mpi.Barrier(c) }},
	{"bcast 8 B", func(c *mpi.Comm) error {
		b := []int64{int64(c.Rank())}
		if err := mpi.Bcast(c, b, 0); err != nil {
			return err
		}
		return expect("bcast", b[0], 0)
	}},
	{"allreduce 8 B", func(c *mpi.Comm) error {
		got := make([]int64, 1)
		if err := mpi.Allreduce(c, []int64{int64(c.Rank())}, got, mpi.Sum); err != nil {
			return err
		}
		n := int64(c.Size())
		return expect("allreduce", got[0], n*(n-1)/2)
	}},
	{"dup", func(c *mpi.Comm) error { return made(c.Size())(c.Dup()) }},
	{"split, one", func(c *mpi.Comm) error { return made(c.Size())(c.Split(0, c.Rank())) }},
	{"split, halves", func(c *mpi.Comm) error {
		return made((c.Size() + 1 - c.Rank()%2) / 2)(c.Split(c.Rank()%2, 0))
	}},
	{"split, backwards", func(c *mpi.Comm) error { return made(c.Size())(c.Split(7, -c.Rank())) }},
	{"split, pairs", func(c *mpi.Comm) error {
		return made(min(2, c.Size()-c.Rank()/2*2))(c.Split(c.Rank()/2, 0))
	}},
	{distGraph, foreignEdges},
}

const distGraph = "dist_graph"

// foreignEdges makes a ring in which each member gives an edge between the next two members, so
// that no member knows its own edges.
func foreignEdges(c *mpi.Comm) error {
	n, me := c.Size(), c.Rank()
	d, err := c.DistGraphCreate([]int{(me + 1) % n}, []int{1}, []int{(me + 2) % n}, mpi.Unweighted, nil, false)
	if err != nil {
		return err
	}
	in, _, out, _, err := d.DistGraphNeighbors()
	if err == nil && (len(in) != 1 || len(out) != 1 || in[0] != (me+n-1)%n || out[0] != (me+1)%n) {
		err = fmt.Errorf("rank %d of %d has sources %v and destinations %v", me, n, in, out)
	}
	return errors.Join(err, d.Free())
}

// made checks the size of a new communicator and frees it.
func made(size int) func(d *mpi.Comm, err error) error {
	return func(d *mpi.Comm, err error) error {
		if err != nil {
			return err
		}
		return errors.Join(expect("size", int64(d.Size()), int64(size)), d.Free())
	}
}

func expect(what string, got, want int64) error {
	if got != want {
		return fmt.Errorf("%s gave %d, not %d", what, got, want)
	}
	return nil
}

// Run runs a job of that many clients, with that many hosts each, and that many procs in total.
func Run(clients, hosts, procs int, progress func(string)) (Report, error) {
	began := time.Now()
	r := Report{Clients: clients, Procs: procs}
	k := kernel.New(1)
	m := &meter{k: k, r: &r, procs: procs, began: began, progress: progress, perSite: make([]int, clients), got: make([]int, procs)}
	cfg := job.Config{
		Links: job.Links{
			Server:  kernel.LinkSpec{Delay: time.Microsecond, Capacity: 64 << 20},
			Proc:    kernel.LinkSpec{Delay: near, Capacity: 64 << 10},
			Channel: kernel.LinkSpec{Delay: far, Capacity: 1 << 20},
		},
		Limit:    1000 * far,
		Program:  m.program,
		Observer: m,
		Quiet:    true,
	}
	for c := range clients {
		site := job.Site{Params: startup.DefaultParams()}
		for h := range hosts {
			n := procs / (clients * hosts)
			if c*hosts+h < procs%(clients*hosts) {
				n++
			}
			site.Hosts = append(site.Hosts, n)
		}
		cfg.Sites = append(cfg.Sites, site)
	}
	w, err := job.New(k, cfg)
	if err != nil {
		return r, err
	}
	res := w.Run(job.Bounds{Events: 1 << 40, Time: 1 << 62})
	r.Events, r.Elapsed, r.StartupSent = k.Events(), time.Since(began), m.server/clients
	return r, errors.Join(append(res.Sites(), res.Err, res.Server())...)
}

// heap collects garbage and returns how many bytes of the heap and of stacks are in use then.
func heap() (inUse, stacks int) {
	runtime.GC()
	runtime.GC() // pools are emptied by the second collection
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int(s.HeapAlloc), int(s.StackInuse)
}
