package check

import (
	"fmt"
	"time"
)

// Job describes the job to a checker before it runs.
type Job struct {
	Datalen uint32 // most data bytes of a packet, 1 or more
	AckMark uint32 // packets that a PROTOACK stands for, 1 to HiWater
	HiWater uint32 // most packets of a pair without PROTOACK

	// PlainReceives means that no proc receives by MPI_Mprobe. Then CANCELNO means that the message
	// is matched, and our procs send SYNCACK before it.
	PlainReceives bool

	Procs []Proc // by world rank
	Hosts []Host // by host rank
}

// Proc is an MPI process.
type Proc struct {
	Identity [IdentitySize]byte // as pk_src has it
	Host     int
}

// Host describes a host. Its flags define what it may do.
type Host struct {
	Client int

	// Own means that the client lists the private version, so that there may be direct links
	// between the host's procs and those of other Own hosts.
	Own bool

	// Foreign means that the host and its procs are not our code. They may write anything to fields
	// that are not used, pk_len of packets without data included, need not fill packets, may leave
	// out labels and not wait for answers.
	Foreign bool

	// Whole means that the links between the host and its procs are not observed; what the host
	// writes to a channel counts as sent by its procs.
	Whole bool
}

// Kind is what an endpoint is; it decides what its Number means.
type Kind uint8

// The endpoints of links.
const (
	KindProc   Kind = iota // number: world rank
	KindAgent              // number: host rank
	KindServer             // number: 0
	KindClient             // number: client rank
)

var kindNames = [...]string{"proc", "agent", "server", "client"}

// Endpoint is who writes and reads at one side of a link.
type Endpoint struct {
	Kind   Kind
	Number int
}

// ProcEnd returns the endpoint that is the proc of a world rank.
func ProcEnd(rank int) Endpoint { return Endpoint{KindProc, rank} }

// AgentEnd returns the endpoint that is the agent of a host rank.
func AgentEnd(host int) Endpoint { return Endpoint{KindAgent, host} }

func (e Endpoint) String() string {
	if e.Kind == KindServer {
		return "server"
	}
	if int(e.Kind) < len(kindNames) {
		return fmt.Sprintf("%s %d", kindNames[e.Kind], e.Number)
	}
	return fmt.Sprintf("endpoint(%d) %d", e.Kind, e.Number)
}

// Checker watches one job. It is for one goroutine.
type Checker struct {
	job       Job
	ackMark   int64
	now       time.Duration
	err       error
	byID      map[[IdentitySize]byte]int
	procs     []proc
	hosts     []host
	clients   []client
	links     map[int]*link
	order     []*link // in the order in which they were announced, for repeatable reports
	pairs     map[[2]int32]*pair
	made      []*pair // in the order of their first packets
	labels    map[uint32]*submissions
	connected int // number of clients that have a link to the server
	failed    *Violation

	trace  func(from, to Endpoint, packet string)
	counts [pkFini + 1]int64 // of packets that their sources have begun, by type
	longs  int64             // of those, the packets that continue a message
}

type proc struct {
	host     int
	link     *link // to its agent
	finished bool  // it has reported to its node that it has finished
	left     bool  // it has ended the link to its agent
	requests map[uint64]*request
	ended    queue[*request] // have ended and are still in requests
}

type host struct {
	Host
	procs    []int
	channels map[int]*link // by host
	links    int
	held     int64 // bytes read and not written
	queued   int64 // bytes that its agent reports as queued
	through  int64 // number of pairs whose packets it passes on
}

// New makes a checker. An error means that the job is impossible.
func New(job Job) (*Checker, error) {
	c := &Checker{
		job: job, ackMark: int64(job.AckMark),
		byID:   make(map[[IdentitySize]byte]int, len(job.Procs)),
		procs:  make([]proc, len(job.Procs)),
		hosts:  make([]host, len(job.Hosts)),
		links:  make(map[int]*link),
		pairs:  make(map[[2]int32]*pair),
		labels: make(map[uint32]*submissions),
	}
	if job.Datalen < 1 || job.AckMark < 1 || job.AckMark > job.HiWater {
		return nil, c.fault(RuleWiring, "datalen %d, ackmark %d, hiwater %d", job.Datalen, job.AckMark, job.HiWater)
	}
	for h, host := range job.Hosts {
		if host.Client < 0 || host.Client >= maxClients {
			return nil, c.fault(RuleWiring, "host %d is of client %d", h, host.Client)
		}
		c.hosts[h].Host = host
		c.hosts[h].channels = make(map[int]*link)
		for len(c.clients) <= host.Client {
			c.clients = append(c.clients, client{rank: len(c.clients)})
		}
	}
	for r, p := range job.Procs {
		if p.Host < 0 || p.Host >= len(job.Hosts) {
			return nil, c.fault(RuleWiring, "proc %d is on host %d of %d", r, p.Host, len(job.Hosts))
		}
		if other, ok := c.byID[p.Identity]; ok {
			return nil, c.fault(RuleWiring, "procs %d and %d have one identity, %s", other, r, who(p.Identity[:]))
		}
		c.byID[p.Identity] = r
		c.procs[r].host = p.Host
		c.hosts[p.Host].procs = append(c.hosts[p.Host].procs, r)
	}
	c.describeClients()
	return c, nil
}
