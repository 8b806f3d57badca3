package sim

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/job"
	"github.com/openimpi/impi/internal/sim/script"
)

// ErrCase is wrapped by the errors of cases that cannot be run.
var ErrCase = errors.New("sim: not a case")

// Case is everything that is decided before a job runs. Seed decides random choices while it runs.
type Case struct {
	Seed      uint64 `line:"-"`
	Key       bool   // sites prove themselves by a key
	Direct    bool   // procs of our own sites open direct links
	Boxes     bool   // direct links between procs of one host have fast boxes
	Serves    bool   // the node of the first site of each job runs its server
	Questions int    // that each host asks others over channels
	Boards    bool   // procs of an own host do collective operations in shared memory
	OnDemand  bool   // all channels between own sites are made on demand
	DialFail  float64
	Silent    int           // connections to the server that say nothing
	Starts    time.Duration // the time within which procs begin their program
	Lasts     time.Duration // how long the job goes on after that, at least
	Stays     time.Duration // the time within which processes end after Finalize
	Sites     []job.Site    `line:"-"` // by world and client rank; a world takes as many sites as its procs fill
	Spares    []Spare       `line:"-"` // of all worlds
	Links     job.Links     `line:"-"`
	Resume    *job.Resume   `line:"-"` // nil: links are not resumed; of jobs that meet it is for links between them
	Firewall  *job.Firewall `line:"-"` // nil: there is none
	// ServerLost is when servers of jobs with spare sites crash, from when all their procs and spare sites are there.
	ServerLost time.Duration
	Chunk      int             // size in bytes of the pieces of an agent's memory; 0: as shipped
	Backlog    int             // callers that may wait at a port; 0: the node's own limit
	Names      int             // most names in one scope of a name server, and twice as many in all scopes; 0: as shipped
	Program    *script.Program `line:"-"`
	Faults     []job.Fault     `line:"-"`
}

// Spare is a spare site of a world that exists from the start.
type Spare struct {
	World int
	job.Spare
}

// Procs counts the procs of all sites and the spawned ones.
func (c *Case) Procs() int {
	n := procsAt(c.Sites)
	if c.Program != nil {
		for w, procs := range c.Program.Worlds {
			if _, spawned := c.Program.Spawned(w); spawned {
				n += procs
			}
		}
	}
	return n
}

func procsAt(sites []job.Site) int {
	cfg := job.Config{Sites: sites}
	return cfg.Procs()
}

// Check returns an error if the case cannot be run: its program must be legal and fit the job.
func (c *Case) Check() error {
	switch {
	case c.Program == nil:
		return fmt.Errorf("%w: it has no program", ErrCase)
	case len(c.Sites) == 0 || len(c.Sites) > wire.MaxClients:
		return fmt.Errorf("%w: it has %d sites", ErrCase, len(c.Sites))
	case c.Program.Procs != c.Procs():
		return fmt.Errorf("%w: the program is for %d procs, the sites have %d", ErrCase, c.Program.Procs, c.Procs())
	}
	for i, s := range c.Sites {
		for _, n := range s.Hosts {
			if n < 1 {
				return fmt.Errorf("%w: site %d has a host with %d procs", ErrCase, i, n)
			}
		}
		if len(s.Hosts) == 0 {
			return fmt.Errorf("%w: site %d has no hosts", ErrCase, i)
		}
	}
	if err := c.checkNumbers(); err != nil {
		return err
	}
	if err := c.checkWorlds(); err != nil {
		return err
	}
	if err := script.Check(c.Program); err != nil {
		return err
	}
	return c.checkSpawns()
}

// checkWorlds checks the sites of a case with several worlds: each belongs to one world, and has
// nothing that jobs that meet cannot have.
func (c *Case) checkWorlds() error {
	if len(c.Program.Worlds) == 0 {
		if len(c.Spares) > 0 {
			return fmt.Errorf("%w: only jobs that meet have spare sites", ErrCase)
		}
		return nil
	}
	last := false
	for w, procs := range c.Program.Worlds {
		_, spawned := c.Program.Spawned(w)
		switch last = last || spawned; {
		case procs >= 1 && spawned:
		case procs < 1 || last:
			return fmt.Errorf("%w: world %d has no procs, or comes after one that is spawned", ErrCase, w)
		case procsAt(c.sitesOf(w)) != procs:
			return fmt.Errorf("%w: no sites have just the %d procs of world %d", ErrCase, procs, w)
		}
	}
	for _, s := range c.Spares {
		if _, spawned := c.Program.Spawned(s.World); spawned || s.World < 0 || s.World >= len(c.Program.Worlds) {
			return fmt.Errorf("%w: a spare site is of world %d, which does not exist from the start", ErrCase, s.World)
		}
	}
	if _, losses := c.Program.Recover(); losses {
		return c.checkSurvival()
	}
	if len(c.Faults) > 0 || c.Questions > 0 || c.Serves || c.Stays > 0 || c.Silent > 0 || c.Starts > 0 || c.Lasts > 0 || c.Firewall != nil || slices.ContainsFunc(c.Sites, func(s job.Site) bool { return s.Foreign != nil }) {
		return fmt.Errorf("%w: jobs that meet have no faults but a step death or fail, no firewall, no silent connections, no times to start or last and no foreign sites", ErrCase)
	}
	return nil
}

// sitesOf returns the sites of a world that exists from the start.
func (c *Case) sitesOf(world int) []job.Site {
	if len(c.Program.Worlds) == 0 {
		return c.Sites
	}
	first, at := 0, 0
	for _, n := range c.Program.Worlds[:world] {
		first += n
	}
	var all []job.Site
	for _, s := range c.Sites {
		if at >= first && at < first+c.Program.Worlds[world] {
			all = append(all, s)
		}
		at += procsAt([]job.Site{s})
	}
	return all
}

func (c *Case) sparesOf(world int) (list []Spare) {
	for _, s := range c.Spares {
		if s.World == world {
			list = append(list, s)
		}
	}
	return list
}

func (c *Case) job(world int) *Case {
	one := *c
	one.Sites = c.sitesOf(world)
	if len(c.Program.Worlds) > 0 {
		one.Sites, _, _ = c.at(world) // no error: Check was called
		one.Spares = c.sparesOf(world)
	}
	return &one
}

// params returns the limits that the sites of a case agree on: the lowest of each. IMPI ch.2, COLL
// command, labels C_DATALEN, P_ACKMARK and P_HIWATER.
func (c *Case) params() startup.Params {
	least := startup.Params{DataLen: math.MaxUint32, AckMark: math.MaxUint32, HiWater: math.MaxUint32, TagUB: math.MaxInt32}
	for _, s := range c.Sites {
		p := s.Params
		if p == (startup.Params{}) {
			p = startup.DefaultParams()
		}
		says := func(l wire.Label) bool { return s.Foreign == nil || !slices.Contains(s.Foreign.Skip, l) }
		if says(wire.LabelDataLen) {
			least.DataLen = min(least.DataLen, p.DataLen)
		}
		if says(wire.LabelTagUB) {
			least.TagUB = min(least.TagUB, p.TagUB)
		}
		if says(wire.LabelAckMark) {
			least.AckMark = min(least.AckMark, p.AckMark)
		}
		if says(wire.LabelHiWater) {
			least.HiWater = min(least.HiWater, p.HiWater)
		}
	}
	return least
}

func (c *Case) chunk() int {
	return cmp.Or(c.Chunk, agent.DefaultChunkSize)
}
