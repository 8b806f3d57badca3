package check

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// These tests run the engines and agents that ship under a checker: whatever they send must be
// right, in all orders and pieces.

// mover is an engine's or an agent's side of a link.
type mover struct {
	input    func() [][]byte
	received func(int) error
	output   func() [][]byte
	sent     func(int)
}

// machine is the common part of engines and agents.
type machine[L any] interface {
	Input(L) [][]byte
	Received(L, int) error
	Output(L) [][]byte
	Sent(L, int)
}

func side[L any](m machine[L], l L) mover {
	return mover{
		input:    func() [][]byte { return m.Input(l) },
		received: func(n int) error { return m.Received(l, n) },
		output:   func() [][]byte { return m.Output(l) },
		sent:     func(n int) { m.Sent(l, n) },
	}
}

// pipe is one direction of a link.
type pipe struct {
	id       int
	fromA    bool
	from, to mover
	b        []byte
}

type plant struct {
	t       *testing.T
	rng     *rand.Rand
	job     Job
	c       *Checker
	engines []*message.Engine
	agents  []*agent.Agent
	pipes   []*pipe
	sends   []*message.Request
	recvs   []*message.Request
}

// newPlant makes a job of three hosts, the third of which is foreign for the agents, and direct
// links between some procs of the others.
func newPlant(t *testing.T, seed uint64) *plant {
	rng := rand.New(rand.NewPCG(seed, 3))
	a := uint32(1 + rng.IntN(4))
	p := &plant{t: t, rng: rng, job: Job{
		PlainReceives: true,
		Datalen:       uint32(1 + rng.IntN(40)), AckMark: a, HiWater: a + uint32(rng.IntN(4)),
		Hosts: []Host{{Client: 0, Own: true}, {Client: 1, Own: true}, {Client: 2}},
	}}
	var ids []wire.Proc
	var procs startup.Procs
	for r := range 6 {
		p.job.Procs = append(p.job.Procs, Proc{identity(r), r / 2})
		id := wire.Proc{PID: int64(1000 + r)}
		copy(id.Host[12:], []byte{127, 0, 0, 1})
		ids = append(ids, id)
		procs.Add(startup.ProcInfo{ID: id, Host: wire.HostRank(r / 2)})
	}
	p.c = newChecker(t, p.job)
	directory, err := message.NewDirectory(ids)
	p.must(err)
	for h := range p.job.Hosts {
		ag, err := agent.New(agent.Config{
			Self: wire.HostRank(h), Procs: procs,
			Hosts:   []agent.Host{{Client: 0, Own: h < 2}, {Client: 1, Own: h < 2}, {Client: 2}},
			MaxData: p.job.Datalen, AckMark: p.job.AckMark, HiWater: p.job.HiWater, ChunkSize: 300,
		})
		p.must(err)
		p.agents = append(p.agents, ag)
	}
	for r := range ids {
		e, err := message.New(message.Config{
			Self: message.Peer(r), Directory: directory,
			MaxData: p.job.Datalen, AckMark: p.job.AckMark, HiWater: p.job.HiWater, StageLimit: 16,
		})
		p.must(err)
		p.engines = append(p.engines, e)
		e.Attach(0)
	}
	p.wire()
	return p
}

func (p *plant) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// wire makes the links and routes.
func (p *plant) wire() {
	for r, e := range p.engines {
		p.must(p.agents[r/2].AttachProc(agent.LinkID(r), wire.WorldRank(r)))
		p.connect(ProcEnd(r), AgentEnd(r/2), side(e, 0), side(p.agents[r/2], agent.LinkID(r)))
	}
	for _, ends := range [][2]int{{1, 0}, {2, 0}, {2, 1}} {
		a, b := p.agents[ends[0]], p.agents[ends[1]]
		p.must(a.AttachHost(agent.LinkID(10+ends[1]), wire.HostRank(ends[1])))
		p.must(b.AttachHost(agent.LinkID(10+ends[0]), wire.HostRank(ends[0])))
		l := p.connect(AgentEnd(ends[0]), AgentEnd(ends[1]),
			side(a, agent.LinkID(10+ends[1])), side(b, agent.LinkID(10+ends[0])))
		p.must(p.c.Sent(l, true, greetingOf(ends[0]), 0))
		p.must(p.c.Received(l, false, greetingSize, 0))
	}
	for _, ends := range [][2]int{{0, 2}, {0, 1}} {
		a, b := p.engines[ends[0]], p.engines[ends[1]]
		a.AttachPeer(message.LinkID(1+ends[1]), message.Peer(ends[1]))
		b.AttachPeer(message.LinkID(1+ends[0]), message.Peer(ends[0]))
		p.connect(ProcEnd(ends[0]), ProcEnd(ends[1]), side(a, message.LinkID(1+ends[1])), side(b, message.LinkID(1+ends[0])))
		a.SetRoute(message.Peer(ends[1]), message.LinkID(1+ends[1]))
		if p.rng.IntN(2) == 0 { // otherwise they answer by the agents
			b.SetRoute(message.Peer(ends[0]), message.LinkID(1+ends[0]))
		}
	}
}

func (p *plant) connect(a, b Endpoint, x, y mover) (id int) {
	id = len(p.pipes)
	p.must(p.c.Link(id, a, b))
	p.pipes = append(p.pipes, &pipe{id: id, fromA: true, from: x, to: y}, &pipe{id: id, from: y, to: x})
	return id
}

// write moves up to n bytes into a pipe.
func (p *plant) write(q *pipe, n int) {
	var b []byte
	for _, part := range q.from.output() {
		b = append(b, part...)
	}
	if b = b[:min(n, len(b))]; len(b) == 0 {
		return
	}
	q.from.sent(len(b))
	p.must(p.c.Sent(q.id, q.fromA, b, 0))
	q.b = append(q.b, b...)
}

// read moves up to n bytes out of a pipe.
func (p *plant) read(q *pipe, n int) {
	if len(q.b) == 0 {
		return
	}
	k := 0
	for _, part := range q.to.input() {
		k += copy(part, q.b[k:min(n, len(q.b))])
	}
	p.must(p.c.Read(q.id, !q.fromA, q.b[:k], 0))
	q.b = q.b[k:]
	p.must(q.to.received(k))
}

// step moves some bytes somewhere.
func (p *plant) step() {
	q := p.pipes[p.rng.IntN(len(p.pipes))]
	if p.rng.IntN(2) == 0 {
		p.write(q, 1+p.rng.IntN(400))
	} else {
		p.read(q, 1+p.rng.IntN(400))
	}
	for _, e := range p.engines {
		for peer, ok := e.Unrouted(); ok; peer, ok = e.Unrouted() {
			e.SetRoute(peer, 0)
		}
	}
	if p.rng.IntN(50) == 0 {
		h := p.rng.IntN(len(p.agents))
		s := p.agents[h].Counts()
		p.must(p.c.Memory(h, int64(s.Queued), int64(s.Memory), 300, time.Second))
	}
}

// act makes a random proc begin, cancel or receive something.
func (p *plant) act() {
	src := p.rng.IntN(len(p.engines))
	e := p.engines[src]
	any := message.Envelope{Rank: message.AnySource, Tag: message.AnyTag}
	switch p.rng.IntN(8) {
	case 0, 1, 2:
		dest := (src + 1 + p.rng.IntN(len(p.engines)-1)) % len(p.engines)
		env := message.Envelope{Rank: wire.CommRank(src), Tag: wire.Tag(p.rng.IntN(3))}
		mode := message.Mode(p.rng.IntN(2)) // standard, synchronous
		data := make([]byte, p.rng.IntN(4*int(p.job.Datalen)))
		r := e.Send(message.Peer(dest), env, mode, data, 0, 0)
		r.User = e
		p.sends = append(p.sends, r)
	case 3:
		if len(p.sends) > 0 {
			r := p.sends[p.rng.IntN(len(p.sends))]
			r.User.(*message.Engine).Cancel(r)
		}
	case 4:
		if _, ok := e.Probe(any, message.NoPeer); ok {
			p.recvs = append(p.recvs, e.Recv(any, message.NoPeer, make([]byte, 100)))
		}
	default:
		p.recvs = append(p.recvs, e.Recv(any, message.NoPeer, make([]byte, 100)))
	}
}

// drain receives what has arrived until no request is left.
func (p *plant) drain() {
	any := message.Envelope{Rank: message.AnySource, Tag: message.AnyTag}
	for round := 0; !p.quiet(); round++ {
		if round > 10000 {
			for _, e := range p.engines {
				for x := range e.Pending() {
					p.t.Log(x)
				}
			}
			p.t.Fatal("no end")
		}
		for range 20 {
			p.step()
		}
		for _, e := range p.engines {
			if _, ok := e.Probe(any, message.NoPeer); ok {
				p.recvs = append(p.recvs, e.Recv(any, message.NoPeer, make([]byte, 100)))
			}
		}
	}
}

// quiet reports whether nothing is under way.
func (p *plant) quiet() bool {
	for _, q := range p.pipes {
		if len(q.b) > 0 || len(q.from.output()) > 0 {
			return false
		}
	}
	for _, e := range p.engines {
		for x := range e.Pending() {
			if x.What != "recv" || x.Total >= 0 {
				return false
			}
		}
	}
	return true
}

// leave ends the procs and lets the agents exchange FINI.
func (p *plant) leave() {
	for r := range p.engines {
		p.must(p.c.Ended(p.pipes[2*r].id, true))
		p.must(p.agents[r/2].ProcDone(wire.WorldRank(r)))
	}
	for !p.quiet() {
		p.step()
	}
	for h, a := range p.agents {
		s := a.Counts()
		if s.Memory > 0 || p.c.Held(h) != 0 {
			p.t.Errorf("agent %d has %d bytes of memory in the end, and holds %d", h, s.Memory, p.c.Held(h))
		}
		p.must(p.c.Memory(h, int64(s.Queued), int64(s.Memory), 300, time.Second))
	}
	p.must(p.c.Finish(true))
}

func TestWhatShipsKeepsTheRules(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		p := newPlant(t, seed)
		for range 1500 {
			if p.rng.IntN(8) == 0 {
				p.act()
			}
			p.step()
		}
		p.drain()
		p.leave()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
