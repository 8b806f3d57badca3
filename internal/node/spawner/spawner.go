package spawner

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/spawn"
	"github.com/openimpi/impi/internal/node/procs"
	"github.com/openimpi/impi/internal/node/routes"
)

// Settings are what a spawner needs of its site's own node.
type Settings struct {
	Routes *routes.Table // has the job's file and the site; its World is needed once somebody spawns
	Procs  *procs.Set
	Log    hclog.Logger

	// NewNode makes a node for procs of a spawned world at this site: a client of that world's job.
	NewNode func(p *Local, job *config.Job, site config.Site) Node

	// NewServer starts the server where the clients of a spawned world find each other.
	NewServer func(job *config.Job, site config.Site, world string) (Server, error)
}

// Node is a node of a spawned world.
type Node interface {
	Run(ctx context.Context) ending.Outcome // until nothing is left
	Ready() <-chan struct{}                 // closed when the procs are in MPI
	Leaving() bool                          // procs of it have passed Finalize
	Signal(syscall.Signal)
}

// Server is that of a spawned world.
type Server interface {
	Address() netip.AddrPort
	Failure() *ending.Failure // waits for the end
	Close()
}

// Spawner starts procs at a site while its job runs. The site's own node and those of all worlds
// that were spawned here share it.
type Spawner struct {
	Settings
	ctx  context.Context
	stop context.CancelCauseFunc
	wg   sync.WaitGroup // of parts that run, and of worlds that somebody here has spawned

	mu      sync.Mutex
	worlds  int // spawned here so far
	slots   spawn.Slots[*Local]
	asked   map[*Local]chan spawn.SlotAnswer[*Local] // by parts that have asked for slots
	running map[*Local]struct{}
	timer   *time.Timer // of the slots' deadline; nil: nobody waits
}

// New makes the spawner of a site. What it starts ends when ctx does.
func New(ctx context.Context, s Settings) *Spawner {
	d := &Spawner{Settings: s, asked: make(map[*Local]chan spawn.SlotAnswer[*Local]), running: make(map[*Local]struct{})}
	d.slots = spawn.Slots[*Local]{Site: s.Routes.Site.Name, Total: s.Routes.Site.Spawn.Slots, Leaving: (*Local).leaving}
	d.ctx, d.stop = context.WithCancelCause(ctx)
	return d
}

// Stop ends everything that was spawned here.
func (d *Spawner) Stop(why error) { d.stop(why) }

// goesOn is how long what was spawned may take to end with its parents before the operator is told
// that it has not.
const goesOn = time.Second

// Wait waits for the end of all that was spawned here.
func (d *Spawner) Wait() {
	late := time.AfterFunc(goesOn, func() {
		if parts := len(d.nodes()); parts > 0 {
			d.Log.Info("the job is over; what it has spawned goes on", "worlds", parts)
		}
	})
	defer late.Stop()
	d.wg.Wait()
}

// Signal sends a signal to the procs that were spawned here.
func (d *Spawner) Signal(s syscall.Signal) {
	for _, n := range d.nodes() {
		n.Signal(s)
	}
}

func (d *Spawner) nodes() (list []Node) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for p := range d.running {
		list = append(list, p.node)
	}
	return list
}

// Use tells how many slots are taken, and how many parts of worlds run.
func (d *Spawner) Use() (slots, parts int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.slots.Taken(), len(d.running)
}

// nextName names the next world that is spawned here.
func (d *Spawner) nextName() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.worlds++
	if len(d.Routes.World.Clients) == 1 {
		return fmt.Sprintf("spawn%d", d.worlds)
	}
	return fmt.Sprintf("%s.spawn%d", d.Routes.Site.Name, d.worlds)
}

// job is what a plan has to know of the site's job.
func (d *Spawner) job() *spawn.Job {
	world := d.Routes.World
	j := &spawn.Job{Self: world.Self}
	if name, err := os.Hostname(); err == nil {
		j.Names = []string{name}
	}
	for _, c := range world.Clients {
		j.Sites = append(j.Sites, spawn.Site{Name: d.Routes.SiteName(int(c.Rank))})
	}
	for _, h := range world.Hosts {
		if h.Client != world.Self {
			s := &j.Sites[h.Client]
			s.Hosts = append(s.Hosts, h.Address.Addr())
		}
	}
	own := &j.Sites[world.Self]
	for _, h := range d.Routes.Site.Hosts {
		own.Hosts = append(own.Hosts, h.Address)
	}
	return j
}

// reserve checks a part of a world and takes its slots; of is nil if another site asks for it. The
// part must be begun or ended.
func (d *Spawner) reserve(ctx context.Context, part *spawn.Part, of *world) (*Local, *spawn.Refusal) {
	p := &Local{spawner: d, part: part, of: of}
	host, ok := d.hostOf(part.Host)
	if !ok {
		return nil, spawn.Refuse(-1, "site %s has no host %s", d.Routes.Site.Name, part.Host)
	}
	p.host = host
	sets := make([]spawn.Soft, len(part.Commands))
	for i := range part.Commands {
		c := &part.Commands[i]
		program, problem := programOf(d.Routes.Site, c, of == nil)
		if problem == "" {
			sets[i], problem = spawn.ReadSoft(c.Info["soft"], c.Procs)
		}
		if problem != "" {
			return nil, c.Refuse(problem)
		}
		p.programs = append(p.programs, program)
	}
	answer := make(chan spawn.SlotAnswer[*Local], 1)
	d.withSlots(func() {
		d.asked[p] = answer
		d.slots.Reserve(time.Now(), p, part.Commands, sets)
	})
	var a spawn.SlotAnswer[*Local]
	select {
	case a = <-answer:
	case <-ctx.Done():
		d.withSlots(func() { d.slots.Cancel(p) })
		a = <-answer
	}
	if a.Refused != nil {
		return nil, a.Refused
	}
	p.granted = a.Granted
	return p, nil
}

// release gives the slots of a part back.
func (d *Spawner) release(p *Local) {
	d.withSlots(func() {
		d.slots.Release(p)
		delete(d.running, p)
	})
}

// withSlots has f tell the slots something, and passes their answers on.
func (d *Spawner) withSlots(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
	for {
		a, ok := d.slots.Next()
		if !ok {
			break
		}
		d.asked[a.Part] <- a
		delete(d.asked, a.Part)
	}
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if at, ok := d.slots.Deadline(); ok {
		d.timer = time.AfterFunc(time.Until(at), func() {
			d.withSlots(func() { d.slots.Tick(time.Now()) })
		})
	}
}

// hostOf gives the host of the site with an address; the first for none.
func (d *Spawner) hostOf(address string) (config.Host, bool) {
	hosts := d.Routes.Site.Hosts
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
