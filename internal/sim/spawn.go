package sim

import (
	"errors"
	"fmt"
	"slices"

	"github.com/openimpi/impi/internal/sim/job"
	"github.com/openimpi/impi/internal/sim/script"
)

// home is where spawned procs run: a site of a world that existed from the start, or its spare site
// n, which is site -1-n. Procs that a
// spawned world spawns use the slots of the same site.
type home struct{ world, site int }

// placed is a row of spawned procs at one site of their world. It does not say how they are spread
// over its hosts.
type placed struct {
	home
	site  job.Site
	slots int // slots in use, one for each proc
}

// spawnedAt works out where the procs of a spawn run, by the rules of docs/dynamic.md: at the site
// of the proc that spawns them, or at the host that a command names. Procs next to each other at
// the spawning site are one site of their world; at another site only if they named the same host.
func (c *Case) spawnedAt(s script.Spawn) ([]placed, error) {
	world := c.Program.WorldOf(s.Root)
	first, site := 0, 0
	for _, n := range c.Program.Worlds[:world] {
		first += n
	}
	sites, homes, err := c.at(world)
	if err != nil {
		return nil, err
	}
	for rank := s.Root - first; site < len(sites) && rank >= procsAt(sites[site:site+1]); site++ {
		rank -= procsAt(sites[site : site+1])
	}
	if site == len(sites) {
		return nil, fmt.Errorf("%w: proc %d is at no site", ErrCase, s.Root)
	}
	own := homes[site]
	sites, spares := c.sitesOf(own.world), c.sparesOf(own.world)
	var all []placed
	last := ""
	for i, n := range s.Procs {
		name, to := "", own.site
		if s.Hosts != nil && s.Hosts[i] != "localhost" && s.Fails != script.NoHost {
			if name, to, err = hostOf(sites, len(spares), s.Hosts[i], own.site); err != nil {
				return nil, err
			}
		}
		if k := len(all) - 1; k >= 0 && last == name {
			all[k].slots += n
		} else {
			all = append(all, placed{home: home{own.world, to}, slots: n, site: job.Site{Params: sites[max(to, 0)].Params}})
		}
		last = name
	}
	for i := range all {
		all[i].site.Hosts = []int{all[i].slots}
	}
	return all, nil
}

// hostOf returns the site of the host that a command names, and the host's name unless it belongs
// to the spawning site.
func hostOf(sites []job.Site, spares int, host string, own int) (name string, site int, err error) {
	for i := range spares {
		if host == spareName(i) {
			return host, -1 - i, nil
		}
	}
	for i, s := range sites {
		is := host == fmt.Sprintf("s%d", i)
		for h := range s.Hosts {
			is = is || host == fmt.Sprintf("10.%d.%d.1", i, h)
		}
		switch {
		case is && i == own:
			return "", i, nil
		case is:
			return host, i, nil
		}
	}
	return "", 0, fmt.Errorf("%w: there is no host %s", ErrCase, host)
}

// at returns the sites of a world, and the home whose slots spawned procs take at each.
func (c *Case) at(world int) (sites []job.Site, homes []home, err error) {
	s, spawned := c.Program.Spawned(world)
	if !spawned {
		sites = c.sitesOf(world)
		for i := range sites {
			homes = append(homes, home{world, i})
		}
		return sites, homes, nil
	}
	if c.Program.WorldOf(s.Root) >= world {
		return nil, nil, fmt.Errorf("%w: world %c is spawned by one that comes after it", ErrCase, 'a'+world)
	}
	list, err := c.spawnedAt(s)
	for _, p := range list {
		sites, homes = append(sites, p.site), append(homes, p.home)
	}
	return sites, homes, err
}

// demand returns how many slots of each site must be taken, and how many may be, while a spawn is
// under way; its own slots included.
func (c *Case) demand(step int) (must, may map[home]int, err error) {
	s := c.Program.Steps[step].(script.Spawn)
	must, may = map[home]int{}, map[home]int{}
	for i, other := range c.Program.Steps {
		x, ok := other.(script.Spawn)
		if !ok || x.Fails == script.NoHost {
			continue
		}
		list, err := c.spawnedAt(x)
		if err != nil {
			return nil, nil, err
		}
		if x.Fails == script.NoSlots && i != step {
			list = list[:len(list)-1] // these get slots until the last one gets none
		}
		hold := script.Holds
		if i != step {
			hold = c.Program.SlotUseOf(x, step)
		}
		for _, p := range list {
			switch {
			case i > step && x.Root == s.Root: // that spawn comes later
			case x.Fails == script.ProcEnds && x.Root == s.Root && i != step && c.spawnsAt(x, p): // that spawn is over before
			case hold == script.Holds:
				must[p.home] += p.slots
				may[p.home] += p.slots
			case hold == script.Ends && c.spawnsAt(x, p): // the spawn waits for these slots
			default:
				may[p.home] += p.slots
			}
		}
	}
	return must, may, nil
}

// spawnsAt reports whether a part of a spawned world is at the site of the proc that spawned it. A
// part elsewhere learns late that it has no parents any more.
func (c *Case) spawnsAt(s script.Spawn, p placed) bool {
	s.Procs, s.Hosts = []int{1}, nil
	list, err := c.spawnedAt(s)
	return err == nil && list[0].home == p.home
}

func (c *Case) spawns() (steps []int) {
	for i, s := range c.Program.Steps {
		if _, ok := s.(script.Spawn); ok {
			steps = append(steps, i)
		}
	}
	return steps
}

// checkSpawns checks that each spawn certainly gets its slots, or certainly does not.
func (c *Case) checkSpawns() error {
	for _, i := range c.spawns() {
		s := c.Program.Steps[i].(script.Spawn)
		must, may, err := c.demand(i)
		if err != nil {
			return err
		}
		list, err := c.spawnedAt(s)
		if err != nil {
			return err
		}
		lacks := slices.ContainsFunc(list, func(p placed) bool { return must[p.home] > c.slots(p.home) })
		scarce := slices.ContainsFunc(list, func(p placed) bool { return may[p.home] > c.slots(p.home) })
		switch {
		case s.Fails == script.NoSlots && !lacks:
			return fmt.Errorf("%w: step %d: there may be room for it", ErrCase, i+1)
		case (s.Fails == script.Nothing || s.Fails == script.ProcEnds) && scarce:
			return fmt.Errorf("%w: step %d: there may be no room for it", ErrCase, i+1)
		}
	}
	return nil
}

func (c *Case) slots(h home) int {
	if h.site < 0 {
		return c.sparesOf(h.world)[-1-h.site].Slots
	}
	return c.sitesOf(h.world)[h.site].Slots
}

// spareName is what the info key host has for a spare site of a world.
func spareName(i int) string { return fmt.Sprintf("spare%d", i) }

// makeRoom gives sites exactly the slots that spawns need, and makes spawns that must fail for lack
// of slots ask for more.
func (c *Case) makeRoom() {
	for _, i := range c.spawns() {
		s := c.Program.Steps[i].(script.Spawn)
		list, err := c.spawnedAt(s)
		if err != nil {
			continue
		}
		if _, may, err := c.demand(i); err == nil {
			for h, n := range may {
				if s.Fails != script.NoSlots || h != list[len(list)-1].home {
					c.grant(h, n)
				}
			}
		}
	}
	for _, i := range c.spawns() {
		s := c.Program.Steps[i].(script.Spawn)
		if list, err := c.spawnedAt(s); err == nil && s.Fails == script.NoSlots {
			s.Procs = slices.Clone(s.Procs)
			s.Procs[len(s.Procs)-1] += c.slots(list[len(list)-1].home)
			c.Program.Steps[i] = s
		}
	}
}

func (c *Case) grant(h home, slots int) {
	for i, n := 0, h.site; n < 0 && i < len(c.Spares); i++ {
		s := &c.Spares[i]
		if s.World != h.world {
			continue
		}
		if n++; n == 0 {
			s.Slots = max(s.Slots, slots)
			return
		}
	}
	first, at := 0, 0
	for _, n := range c.Program.Worlds[:h.world] {
		first += n
	}
	for i := range c.Sites {
		if at == first {
			s := &c.Sites[i+h.site]
			s.Slots = max(s.Slots, slots)
			return
		}
		at += procsAt(c.Sites[i : i+1])
	}
}

func hosts(sites []job.Site) (names []string) {
	for i, s := range sites {
		names = append(names, fmt.Sprintf("s%d", i))
		for h := range s.Hosts {
			names = append(names, fmt.Sprintf("10.%d.%d.1", i, h))
		}
	}
	return append(names, "localhost", "localhost")
}

func (c *Case) wellPlaced(world int, sites []job.Site) error {
	s, _ := c.Program.Spawned(world)
	want, err := c.spawnedAt(s)
	if err == nil && !slices.EqualFunc(want, sites, func(p placed, s job.Site) bool { return p.slots == procsAt([]job.Site{s}) }) {
		err = fmt.Errorf("world %c has sites %+v, and must have %+v", 'a'+world, sites, want)
	}
	return err
}

var errEndsEarly = errors.New("it ends before it is in MPI")

// doomed returns the job of procs whose spawn must fail: they do nothing, or end before Init.
func (x *execution) doomed(program string, sites []job.Site) (*job.Config, error) {
	one := *x.c
	one.Sites, one.Spares = sites, nil
	watch, err := newWatch(x.k, &one, x.cover, false)
	if err != nil {
		return nil, err
	}
	cfg := x.config(&one, watch, 0)
	cfg.Program = func(job.Env) error { return nil }
	if last := procsAt(sites) - 1; program == script.ProcEnds.String() {
		cfg.Start = func(rank int) error {
			if rank == last {
				return errEndsEarly
			}
			return nil
		}
	}
	return &cfg, nil
}

func (x *execution) spawned(program string, sites []job.Site) (*job.Config, error) {
	if len(program) > 1 {
		return x.doomed(program, sites)
	}
	world := int(program[0] - 'a')
	if world < 0 || world >= len(x.worlds) || x.worlds[world] != nil {
		return nil, fmt.Errorf("there is no program %q", program)
	}
	first := 0
	for _, n := range x.c.Program.Worlds[:world] {
		first += n
	}
	if x.misplaced = x.c.wellPlaced(world, sites); x.misplaced != nil {
		return nil, x.misplaced
	}
	one := x.c.job(world)
	one.Sites = sites // these sites have the hosts over which the procs are spread
	watch, err := newWatch(x.k, one, x.cover, x.trace)
	if err != nil {
		return nil, err
	}
	x.watches[world] = watch
	cfg := x.config(one, watch, first)
	cfg.Started = func(w *job.Simulation) { x.worlds[world] = w }
	return &cfg, nil
}
