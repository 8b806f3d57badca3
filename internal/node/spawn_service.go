package node

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/wireup"
)

// slotWait is how long a spawn waits for slots of procs that are about to end.
const slotWait = 2 * time.Second

// spawnService starts procs at a site while its job runs. The site's own node and those
// of all worlds that were spawned here share it: a spawned world is a job of its
// own, whose nodes live in the process of the site's.
type spawnService struct {
	root *node // the site's own
	ctx  context.Context
	stop context.CancelCauseFunc // ends everything that was spawned
	wg   sync.WaitGroup          // of shares that run, and of worlds that somebody here has spawned

	mu     sync.Mutex
	worlds int // spawned here so far
	taken  int // slots
	shares map[*share]struct{}
	freed  chan struct{} // closed when slots come back
}

// newSpawnService makes the spawn service of a site. What it starts ends when ctx does.
func newSpawnService(ctx context.Context, root *node) *spawnService {
	d := &spawnService{root: root, shares: make(map[*share]struct{}), freed: make(chan struct{})}
	d.ctx, d.stop = context.WithCancelCause(ctx)
	return d
}

// name names the next world that is spawned here.
func (d *spawnService) name() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.worlds++
	if len(d.root.job.Clients) == 1 {
		return fmt.Sprintf("spawn%d", d.worlds)
	}
	return fmt.Sprintf("%s.spawn%d", d.root.opt.Site.Name, d.worlds)
}

// spawnPart is what one site is asked to start of a spawned world.
type spawnPart struct {
	World    string        `json:"world"`          // name, for people
	Host     string        `json:"host,omitempty"` // address of the site's host; empty: any
	Commands []spawnNumber `json:"commands"`
}

// spawnNumber is a command with its place among all those of the spawn.
type spawnNumber struct {
	Number int `json:"number"`
	wireup.Command
}

// refusal is why procs are not started, and the command that it is about, or -1.
type refusal struct {
	Command int    `json:"command"`
	Reason  string `json:"reason"`
}

// Error is the reason.
func (r *refusal) Error() string { return r.Reason }

func refusing(command int, format string, args ...any) *refusal {
	return &refusal{command, fmt.Sprintf(format, args...)}
}

// about says in a reason which command it is about.
func (c *spawnNumber) about(reason string) *refusal {
	return refusing(c.Number, "command %d (%s): %s", c.Number, c.Path, reason)
}

// reserve checks a part and takes its slots. The share must be started or released.
func (d *spawnService) reserve(ctx context.Context, part *spawnPart, elsewhere bool) (*share, *refusal) {
	s := &share{service: d, part: part}
	host, ok := d.hostOf(part.Host)
	if !ok {
		return nil, refusing(-1, "site %s has no host %s", d.root.opt.Site.Name, part.Host)
	}
	s.host = host
	sets := make([]soft, len(part.Commands))
	for i := range part.Commands {
		c := &part.Commands[i]
		program, problem := d.programOf(&c.Command, elsewhere)
		if problem == "" {
			sets[i], problem = readSoft(c.Info["soft"], c.Procs)
		}
		if problem != "" {
			return nil, c.about(problem)
		}
		s.programs = append(s.programs, program)
	}
	patience := time.NewTimer(slotWait)
	defer patience.Stop()
	for {
		r, freed := d.take(s, sets)
		switch {
		case r == nil:
			return s, nil
		case freed == nil:
			return nil, r
		}
		select {
		case <-freed:
		case <-patience.C:
			return nil, r
		case <-ctx.Done():
			return nil, r
		}
	}
}

// take takes slots for a share, or tells why it cannot, and what to wait for: nothing
// if nobody is about to end.
func (d *spawnService) take(s *share, sets []soft) (r *refusal, freed <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	slots := d.root.opt.Site.Spawn.Slots
	room, wanted := slots-d.taken, 0
	granted := make([]int, len(sets))
	for i, set := range sets {
		c := &s.part.Commands[i]
		if granted[i] = set.most(min(c.Procs, room)); granted[i] < 0 {
			r = c.about(fmt.Sprintf("of the %d slots of site %s for spawned procs %d are taken, and it needs %d more", slots, d.root.opt.Site.Name, slots-room, c.Procs))
			break
		}
		room -= granted[i]
		wanted += granted[i]
	}
	switch {
	case r != nil && d.draining():
		return r, d.freed
	case r != nil:
		return r, nil
	}
	d.taken += wanted
	s.granted, s.slots = granted, wanted
	return nil, nil
}

// draining tells whether procs that were spawned here are about to end.
func (d *spawnService) draining() bool {
	for s := range d.shares {
		if s.leaving() {
			return true
		}
	}
	return false
}

// release gives the slots of a share back.
func (d *spawnService) release(s *share) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.taken -= s.slots
	s.slots = 0
	delete(d.shares, s)
	close(d.freed)
	d.freed = make(chan struct{})
}

// hostOf gives the host of the site with an address; the first for none.
func (d *spawnService) hostOf(address string) (config.Host, bool) {
	hosts := d.root.opt.Site.Hosts
	if address == "" {
		return hosts[0], true
	}
	a, err := netip.ParseAddr(address)
	i := slices.IndexFunc(hosts, func(h config.Host) bool { return h.Address == a })
	if err != nil || i < 0 {
		return config.Host{}, false
	}
	return hosts[i], true
}

// living counts what was spawned and runs here.
func (d *spawnService) living() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.shares)
}
