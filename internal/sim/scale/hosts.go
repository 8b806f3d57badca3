package scale

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/membership"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/cluster"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/sim/tree"
	"github.com/openimpi/impi/plugins/sdk/support/unproved"
)

// Delays of messages between hosts of a site, and between a head and the server. Links have
// unlimited bandwidth.
const (
	inSite   = time.Millisecond
	toServer = 25 * time.Millisecond
)

// HostsReport is the cost of starting sites of many hosts, without the procs' own work. Bytes are
// those of messages; the overhead of TCP, TLS and HTTP/2 is not counted.
type HostsReport struct {
	Sites int `json:"sites"`
	Hosts int `json:"hosts"` // hosts of each site
	Procs int `json:"procs"` // procs of each host

	Depth    int `json:"depth"`    // steps from the head to the farthest host
	Messages int `json:"messages"` // total messages between hosts of one site
	Bytes    int `json:"bytes"`

	HeadMessages int `json:"head_messages"` // messages that one head received
	HeadIn       int `json:"head_bytes_in"`
	HeadOut      int `json:"head_bytes_out"` // bytes that one head sent; most are the job, to each of its children
	Job          int `json:"job_bytes"`      // bytes of the job that each host receives
	Server       int `json:"server_bytes"`   // from the server to one head

	Gathered time.Duration `json:"gathered_ns"` // simulated time until the last head knows its hosts
	Joined   time.Duration `json:"joined_ns"`   // simulated time until the last site is through startup
	Started  time.Duration `json:"started_ns"`  // simulated time until the last host has the job

	Channels  int           `json:"channels"`         // channels of the last host to others, when the dance is over
	Table     int           `json:"table_bytes"`      // bytes of the table that one host shares with its procs
	JobHeap   int           `json:"job_heap_bytes"`   // heap of one host, for the job without that table
	AgentHeap int           `json:"agent_heap_bytes"` // heap of one host's agent and channels, without the job
	Elapsed   time.Duration `json:"elapsed_ns"`       // real time
}

// Hosts starts that many sites, with that many hosts each and procs on each host, up to the point
// where the hosts have started their procs.
func Hosts(sites, hosts, procs int) (HostsReport, error) {
	began := time.Now()
	s := &start{k: kernel.New(1), r: HostsReport{Sites: sites, Hosts: hosts, Procs: procs}, left: sites * hosts}
	s.k.KeepTrace(0)
	if err := s.begin(); err != nil {
		return s.r, err
	}
	if err := s.k.Run(1<<40, time.Hour, func() bool { return s.err != nil || s.left == 0 }); err != nil {
		return s.r, err
	}
	if s.err == nil && s.left > 0 {
		s.err = fmt.Errorf("%d hosts have not started", s.left)
	}
	if s.err != nil {
		return s.r, s.err
	}
	s.count()
	err := s.host()
	s.r.Elapsed = time.Since(began)
	return s.r, err
}

type start struct {
	k      *kernel.Kernel
	r      HostsReport
	server *startup.Server
	sites  []*headed
	left   int // hosts that do not have the job yet
	err    error
}

// headed is one site. It owns its tree.
type headed struct {
	s      *start
	rank   int
	tree   *tree.Tree
	client *startup.Client
	up     line // line to the server
	down   line
	got    int // bytes received from the server
	job    []byte
}

func (s *start) begin() (err error) {
	if s.server, err = startup.NewServer(startup.ServerConfig{Clients: s.r.Sites, Auth: startup.Auth{None: true}}, s.time()); err != nil {
		return err
	}
	shape := membership.Tree{Hosts: s.r.Hosts, Fan: membership.DefaultFan}
	for host := s.r.Hosts - 1; host > 0; host = shape.Parent(host) {
		s.r.Depth++
	}
	for c := range s.r.Sites {
		x := &headed{s: s, rank: c, up: line{k: s.k}, down: line{k: s.k}}
		s.sites = append(s.sites, x)
		x.tree, err = tree.New(tree.Config{
			Kernel: s.k, Shape: shape, Beat: 2 * time.Second, Silence: 8 * time.Second, Limit: time.Minute, Late: inSite, Time: s.time, Owner: x, Thin: 1 << 20,
			Link: func(int, int) *kernel.Link {
				return s.k.NewLink(kernel.LinkSpec{Name: "tree", Delay: inSite, Capacity: 64 << 10}, nil)
			},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *start) time() time.Time { return time.Unix(1_000_000, 0).Add(s.k.Now()) }

func (s *start) fail(err error) {
	if s.err == nil && err != nil {
		s.err = err
	}
}

func (s *start) count() {
	for _, x := range s.sites {
		for h := range s.r.Hosts {
			t := x.tree.Traffic(h)
			s.r.Messages += t.Received
			s.r.Bytes += t.BytesIn
		}
	}
	head := s.sites[0].tree.Traffic(0)
	s.r.HeadMessages, s.r.HeadIn, s.r.HeadOut = head.Received, head.BytesIn, head.BytesOut
	s.r.Job, s.r.Server = len(s.sites[0].job), s.sites[0].got
}

// host measures the memory that the last host of all needs, with the channels that it makes at the
// start.
func (s *start) host() error {
	text := s.sites[len(s.sites)-1].job
	job, _, err := cluster.DecodeJob(text)
	if err != nil {
		return err
	}
	table := job.Procs.Table() // nodes have the table in the memory that procs get
	s.r.Table = len(table)
	before, _ := heap()
	if job, _, err = cluster.DecodeJob(text); err != nil {
		return err
	}
	if job.Procs, err = startup.OpenProcs(table); err != nil {
		return err
	}
	after, _ := heap()
	s.r.JobHeap = after - before
	self := wire.HostRank(len(job.Hosts) - 1)
	channels := agent.NewChannels(agent.ChannelsConfig{Job: job, Hosts: []wire.HostRank{self}})
	c := agent.Config{Self: self, MaxData: job.DataLen, AckMark: job.AckMark, HiWater: job.HiWater, Procs: job.Procs}
	for i, h := range job.Hosts {
		c.Hosts = append(c.Hosts, agent.Host{Client: h.Client, Own: true, OnDemand: channels.OnDemand(self, wire.HostRank(i))})
	}
	a, err := agent.New(c)
	if err != nil {
		return err
	}
	if err := s.dance(channels, a, self); err != nil {
		return err
	}
	with, _ := heap()
	s.r.AgentHeap = with - after
	runtime.KeepAlive(job)
	runtime.KeepAlive(table)
	runtime.KeepAlive(channels)
	runtime.KeepAlive(a)
	return nil
}

// dance gives the last host's agent its channels, all of which that host dials.
func (s *start) dance(channels *agent.Channels, a *agent.Agent, self wire.HostRank) error {
	d, err := channels.Begin(self, time.Time{}, time.Time{})
	if err != nil {
		return err
	}
	for i, x := range d.Dials() {
		d.Dialed(i, x.Host)
		if err := a.AttachHost(agent.LinkID(i), x.Host); err != nil {
			return err
		}
		s.r.Channels++
	}
	if !d.Done() {
		return errors.New("the dance of the last host is not over")
	}
	channels.End(self)
	return nil
}

// Asked is not called: no host asks.
func (x *headed) Asked(int, []byte, func([]byte)) {}

// Joined submits the part of a host, with one business card for its procs. Their identities are
// consecutive, and as large as nodes make them.
func (x *headed) Joined(host int) {
	address := wire.HostID{12: 10, 13: byte(x.rank), 14: byte(host >> 8), 15: byte(host)}
	card := dynamic.BusinessCard{
		Version: dynamic.CardVersion, Node: fmt.Sprintf("%016x%016x", x.rank, host), ByteOrder: dynamic.LittleEndian,
		Addresses: []dynamic.TransportAddress{{Transport: "tcp", Address: fmt.Sprintf("%v:%d", address.Addr(), 40000)}, {Transport: "shm", Address: "local"}},
	}
	text, err := card.AppendText(nil)
	x.s.fail(err)
	h := startup.HostConfig{Address: address, Port: 40000}
	for i := range x.s.r.Procs {
		h.Procs = append(h.Procs, startup.ProcConfig{ID: wire.Proc{Host: address, PID: 1<<62 | int64(host)<<20 | int64(i)}, Card: text})
	}
	b, err := cluster.EncodePart(h)
	x.s.fail(err)
	x.tree.Submit(host, b)
}

// Gathered makes the site join at the server.
func (x *headed) Gathered(parts [][]byte) {
	x.s.r.Gathered = x.s.k.Now()
	c := startup.ClientConfig{Rank: wire.ClientRank(x.rank), Auth: startup.Auth{None: true}, Params: startup.DefaultParams()}
	c.Token[0], c.Versions = byte(x.rank+1), []wire.Version{wire.OnDemandVersion}
	for _, p := range parts {
		h, err := cluster.DecodePart(p, x.s.r.Procs)
		x.s.fail(err)
		c.Hosts = append(c.Hosts, h)
	}
	var err error
	if x.client, err = startup.NewClient(c); err != nil {
		x.s.fail(err)
		return
	}
	x.client.Start(x.s.time())
	x.up.after(toServer, func() {
		x.s.server.Accept(startup.ConnID(x.rank+1), fmt.Sprintf("10.%d.0.1:4000", x.rank), unproved.Source{}, x.s.time())
		x.s.serve()
	})
	x.say()
}

func (x *headed) say() {
	b := append([]byte(nil), x.client.Output()...)
	if len(b) == 0 {
		return
	}
	x.up.after(toServer, func() {
		for part := b; len(part) > 0; { // in pieces, as sockets deliver it
			n := min(len(part), 64<<10)
			x.s.server.Receive(startup.ConnID(x.rank+1), part[:n], x.s.time())
			part = part[n:]
		}
		x.s.serve()
	})
}

func (s *start) serve() {
	for a, ok := s.server.Next(); ok; a, ok = s.server.Next() {
		if a.Kind == startup.ActSend {
			x := s.sites[a.Conn-1]
			x.down.after(toServer, func() { x.hear(a.Bytes) })
		}
	}
	if ended, err := s.server.Ended(); ended {
		s.fail(fmt.Errorf("the server has ended: %w", err))
	}
}

func (x *headed) hear(b []byte) {
	if x.job != nil {
		return
	}
	x.got += len(b)
	if err := x.client.Receive(b, x.s.time()); err != nil {
		x.s.fail(fmt.Errorf("site %d: %w", x.rank, err))
		return
	}
	x.say()
	job, ok := x.client.Job()
	if !ok {
		return
	}
	x.s.r.Joined = x.s.k.Now()
	var err error
	x.job, err = cluster.EncodeJob(job, [startup.TokenSize]byte{1})
	x.s.fail(err)
	x.client = nil
	x.tree.Start(x.job)
	x.Started(0, x.job)
}

// Started records that a host can begin its dance.
func (x *headed) Started(int, []byte) {
	x.s.left--
	x.s.r.Started = x.s.k.Now()
}

// Finished does not happen here.
func (x *headed) Finished() {}

// Fails does not happen here.
func (x *headed) Fails(_ int, report string) { x.s.fail(errors.New(report)) }

// JobEnded does not happen here.
func (x *headed) JobEnded(int, string) {}

// Lost must not happen.
func (x *headed) Lost(at, who int, why error) {
	x.s.fail(fmt.Errorf("site %d: host %d has lost host %d: %w", x.rank, at, who, why))
}

// LostBelow must not happen.
func (x *headed) LostBelow(at int, hosts []int, why error) { x.Lost(at, hosts[0], why) }

// Missing must not happen.
func (x *headed) Missing(_ []int, why error) { x.s.fail(why) }

// Misplaced must not happen.
func (x *headed) Misplaced(at, child int) {
	x.s.fail(fmt.Errorf("site %d: host %d was sent to host %d", x.rank, child, at))
}

// ParentNotFound must not happen.
func (x *headed) ParentNotFound(host int) {
	x.s.fail(fmt.Errorf("site %d: host %d has not found its parent", x.rank, host))
}

// line delays events, and keeps their order.
type line struct {
	k    *kernel.Kernel
	last time.Duration
}

func (l *line) after(d time.Duration, f func()) {
	l.last = max(l.k.Now()+d, l.last+1)
	l.k.After(l.last-l.k.Now(), f)
}
