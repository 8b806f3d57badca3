// Package job simulates whole IMPI jobs: the server, the sites with their nodes, packet switches
// and transport plugins, the procs, and all links between them. It runs the code that ships, from
// core/startup to core/mpi, with the packet switches and drivers; only sockets, processes and
// clocks are the kernel's. What internal/node does with those it does by itself.
package job

import (
	"cmp"
	"fmt"
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/internal/sim/kernel"
)

// Config describes a job.
type Config struct {
	Sites    []Site // by client rank
	Spares   []Spare
	Auth     startup.Auth
	Direct   bool // procs of our own sites open direct links
	OnDemand bool // all channels between own sites are made on demand
	Boxes    bool // direct links of procs of a host have fast boxes
	Boards   bool // procs of a host do collective operations in shared memory
	Survive  bool // the job continues without procs that are lost once all have begun
	Serves   bool // the node of the first site, which is ours, runs the server
	DialFail float64

	Stays time.Duration // the time within which processes end after Finalize

	// Questions is how many questions each host asks others over channels. The observer must not
	// judge the bytes of channels then.
	Questions int
	Limit     time.Duration // maximum time of startup; 0: a minute

	Firewall *Firewall // nil: hosts can reach each other

	// ServerLost is when the server of a job that has spare sites crashes, counted from when all procs and
	// spare sites are there. 0: it does not.
	ServerLost time.Duration

	// Silent is how many connections to the server say nothing. It then keeps few of them.
	Silent int

	Links  Links
	Resume *Resume // which links are resumed when they break; nil: none

	// Program is run by each proc between Init and Finalize.
	Program func(env Env) error

	// Start is run by each proc before Init; nil: nothing.
	Start func(rank int) error

	// Started is called with the job if it is spawned.
	Started func(*Simulation)

	// Observer, if any, sees all links.
	Observer Observer

	// ChunkSize is the size of the agents' chunks in bytes; 0: each agent uses a random one, at
	// most 16 KiB.
	ChunkSize int

	Quiet bool // keep no trace

	// Worlds is where the job's procs meet those of other jobs; nil: they do not.
	Worlds *Worlds
}

// Site is one client.
type Site struct {
	Hosts   []int          // procs of each host
	Params  startup.Params // zero: the defaults
	Foreign *Foreign       // nil: an own site
	Slots   int            // slots for spawned procs
	Late    time.Duration  // the time within which its hosts start, if there are several; 0: a millisecond

	// NoOnDemand means that its release does not announce that it makes channels to other sites on
	// demand, and does not make them so.
	NoOnDemand bool

	// Together means that a launcher of the site's own MPI starts and ends its procs, in a job that goes
	// on without lost procs: with one of them all are lost. The site has one host.
	Together bool

	// NoDirect means that its procs neither open nor accept direct links.
	NoDirect bool

	Prefer []string // transports for direct links, best first: Plain and Encrypted; nil: Plain
	Secret bool     // it demands that direct links are encrypted
	Data   string   // the representation of data that it insists on; empty: any
}

// Links define how the links behave. A zero spec means a default.
type Links struct {
	Server, Proc, Channel, Direct kernel.LinkSpec
	Worlds                        kernel.LinkSpec // between procs of different worlds
}

// Env is what a proc's program can use.
type Env interface {
	// World returns the proc's MPI_COMM_WORLD.
	World() *mpi.Comm
	// BufferAttach and BufferDetach are the functions of package mpi for this proc.
	BufferAttach(size int) error
	BufferDetach() (size int, err error)
	// Pause makes the proc compute for d of virtual time.
	Pause(d time.Duration)
	// Log adds a line to the trace.
	Log(format string, args ...any)
}

// EndpointKind is the kind of an end of a link.
type EndpointKind uint8

// The kinds.
const (
	AtProc   EndpointKind = iota // Number is the world rank
	AtAgent                      // Number is the host rank
	AtClient                     // Number is the client rank
	AtServer
)

// Endpoint is an end of a link.
type Endpoint struct {
	Kind   EndpointKind
	Number int
}

// String names the endpoint.
func (e Endpoint) String() string {
	switch e.Kind {
	case AtProc:
		return fmt.Sprintf("rank %d", e.Number)
	case AtAgent:
		return fmt.Sprintf("host %d", e.Number)
	case AtClient:
		return fmt.Sprintf("client %d", e.Number)
	case AtServer:
		return "server"
	}
	return "nobody"
}

// Observer receives the links, the bytes on them and the crashes of a job.
type Observer interface {
	// Begin is called when the world is known, before packets are sent.
	Begin(j *startup.Job)
	// Link announces a link between two endpoints, and returns its watcher. Links of the server are
	// announced before Begin.
	Link(l *kernel.Link, ends [2]Endpoint) kernel.Watcher
	// Cut reports that a link was cut on purpose.
	Cut(l *kernel.Link)
	// Crashed reports that an endpoint has died.
	Crashed(e Endpoint)
	// Fault returns the first error that the observer has found.
	Fault() error
}

// AgentObserver is an Observer that also receives the state of agents' memory.
type AgentObserver interface {
	// Agent is called with the agent's own figures after it has moved bytes.
	Agent(host int, s agent.Counts)
}

func (c *Config) withDefaults() {
	c.Limit = cmp.Or(c.Limit, time.Minute)
	if c.Resume != nil {
		c.Resume = c.Resume.withDefaults()
	}
	if !c.Auth.None && !c.Auth.HasKey {
		c.Auth.None = true
	}
	for _, s := range []*kernel.LinkSpec{&c.Links.Server, &c.Links.Proc, &c.Links.Channel, &c.Links.Direct} {
		s.Capacity = cmp.Or(s.Capacity, 64<<10)
	}
	for i := range c.Sites {
		if c.Sites[i].Params == (startup.Params{}) {
			c.Sites[i].Params = startup.DefaultParams()
		}
	}
}

// Procs counts the procs of all sites.
func (c *Config) Procs() int {
	n := 0
	for _, s := range c.Sites {
		for _, h := range s.Hosts {
			n += h
		}
	}
	return n
}
