package spawner

import (
	"context"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/spawn"
	"github.com/openimpi/impi/internal/lifetime"
	"github.com/openimpi/impi/internal/procs"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/spawner/spares"
)

// Settings are what a spawner needs of its site's own node.
type Settings struct {
	Routes *routes.Table // has the job's file and the site; its World is needed for spawns
	Procs  *procs.Set
	Log    hclog.Logger

	// NewNode makes a node for procs of a spawned world at this site: a client of that world's job.
	NewNode func(p *Local, job *config.Job, site config.Site) Node

	// Hosts are those of the site, if each has a node of its own; this is the node of host Self.
	// The node of the first host manages the slots. Nil if this node runs all hosts of the site.
	Hosts    []config.Host
	Self     int
	ProcsFor func(host int) int  // number of procs of the job on a host; nil if Hosts is
	Present  func(host int) bool // whether a host is still there, at the first one; nil if Hosts is

	// SpareSites are the spare sites, which spawns ask for procs. SpareTaken is called, at the node of
	// a spare site, when the number of spawned procs may have changed; at other nodes it is nil.
	SpareSites *spares.SpareSites
	SpareTaken func()

	// Ask sends a question to the spawner of another host's node, and returns its Answer.
	Ask func(ctx context.Context, host int, question []byte) (answer []byte, err error)

	// NewServer starts the server where the clients of a spawned world find each other.
	NewServer func(job *config.Job, site config.Site, world string) (Server, error)
}

// Node is a node of a spawned world.
type Node interface {
	Run(ctx context.Context) ending.Outcome // until nothing is left
	Ready() <-chan struct{}                 // closed when the procs are in MPI
	Leaving() bool                          // some of its procs have passed Finalize
	Signal(syscall.Signal)
}

// Server is the server of a spawned world.
type Server interface {
	Address() netip.AddrPort
	Failure() *ending.Failure // waits for the end
	Close()
}

// Spawner starts procs at a site while its job runs. The site's own node and those of all worlds
// that were spawned here share it.
type Spawner struct {
	Settings
	tasks *lifetime.Group // parts that run, and worlds that procs here have spawned, which end with it
	stop  context.CancelCauseFunc

	mu        sync.Mutex
	worlds    int    // number spawned at the site so far, at its first host
	claims    uint64 // number made here so far
	slots     spawn.Slots[claim]
	asked     map[claim]chan spawn.SlotAnswer[claim] // claims that wait for slots
	parts     map[hostClaim]*Local                   // parts that this node runs, for its own or other nodes' claims
	hostParts map[hostClaim]*hostPart                // host parts at all hosts for which this node has claimed slots
	running   map[*Local]struct{}
	alarm     lifetime.Alarm // at the slots' deadline
}

// New makes the spawner of a site. What it starts ends when ctx does.
func New(ctx context.Context, s Settings) *Spawner {
	d := &Spawner{Settings: s, asked: make(map[claim]chan spawn.SlotAnswer[claim]), parts: make(map[hostClaim]*Local), hostParts: make(map[hostClaim]*hostPart), running: make(map[*Local]struct{})}
	d.slots = spawn.Slots[claim]{Site: s.Routes.Site.Name, Total: s.Routes.Site.Spawn.Slots, Leaving: d.leaving}
	ctx, d.stop = context.WithCancelCause(ctx)
	d.tasks = lifetime.NewGroup(ctx)
	return d
}

// Stop ends everything that was spawned here.
func (d *Spawner) Stop(why error) { d.stop(why) }

// goesOn is how long spawned worlds may take to end with their parents before the operator is told
// that they go on.
const goesOn = time.Second

// Wait waits for the end of all that was spawned here. Nothing is started after that. Before that
// it calls others, which waits for other nodes that may spawn here.
func (d *Spawner) Wait(others func()) {
	late := time.AfterFunc(goesOn, func() {
		if parts := len(d.nodes()); parts > 0 {
			d.Log.Info("the job is over; what it has spawned goes on", "worlds", parts)
		}
	})
	defer late.Stop()
	others()
	d.tasks.Drain()
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

// InUse returns how many of the slots of this node are taken, and how many parts of worlds run
// here.
func (d *Spawner) InUse() (slots, parts int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.slots.Taken(), len(d.running)
}

func (d *Spawner) withSlots(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
	for {
		a, ok := d.slots.Next()
		if !ok {
			break
		}
		if c := d.asked[a.Part]; c != nil {
			c <- a
			delete(d.asked, a.Part)
		}
	}
	at, ok := d.slots.Deadline()
	d.alarm.Set(at, ok, func() { d.withSlots(func() { d.slots.Tick(time.Now()) }) })
	if d.SpareTaken != nil {
		d.SpareTaken()
	}
}
