package coll

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/wire"
)

// job is a communicator of n members, all of whose schedules run in this
// process. It is the reference executor: random interleaving, buffered or
// synchronous sends, and every hazard between buffers and messages reported.
type job struct {
	t        testing.TB
	clients  []wire.ClientRank
	planners []*Planner
	scheds   []Schedule
	rng      *rand.Rand
	sync     bool // sends complete when they are received
	trace    []string
	levels   [3]traffic // inside hosts, between hosts of a client, between clients
	most     int        // bytes that a host has sent to others
	sent     map[[2]int]int
	own      map[wire.ClientRank]*own
	ways     int // the longest chain of messages between clients, each of which waits for the one before
	left     int // of an intercommunicator: how many of the members are of the first group
}

// traffic is what was sent.
type traffic struct{ messages, bytes int }

const testContext = 40

// newJob makes the communicator. reps gives each pair of clients its
// representation.
func newJob(t testing.TB, clients []wire.ClientRank, profile Profile, reps func(a, b int) Peer, seed uint64) *job {
	n := len(clients)
	table := comm.NewClients(append(make([]wire.ClientRank, 100), clients...))
	j := &job{t: t, clients: clients, rng: rand.New(rand.NewPCG(seed, 1)), scheds: make([]Schedule, n)}
	for r := range n {
		c, err := comm.New(comm.Spec{Context: testContext, Group: comm.NewGroup(100, n), Self: comm.Proc(100 + r),
			Clients: table})
		if err != nil {
			t.Fatal(err)
		}
		mine := profile
		if reps != nil {
			mine.Clients = nil
			for other := range wire.MaxClients {
				a, b := min(int(clients[r]), other), max(int(clients[r]), other)
				mine.Clients = append(mine.Clients, reps(a, b))
			}
		}
		j.planners = append(j.planners, NewPlanner(c, mine))
		j.scheds[r].scratch.block = garbage()
	}
	return j
}

// place is a member's rank in its group.
func (j *job) place(i int) int {
	if j.left > 0 && i >= j.left {
		return i - j.left
	}
	return i
}

// member is the member that a step of member i talks to.
func (j *job) member(i int, t *Step) int {
	base := 0
	if j.left > 0 && (i >= j.left) != t.Remote {
		base = j.left
	}
	return base + int(t.Peer)
}

// newInterJob makes an intercommunicator of two groups.
func newInterJob(t testing.TB, clients []wire.ClientRank, left int, profile Profile, reps func(a, b int) Peer, seed uint64) *job {
	j := newJob(t, clients, profile, reps, seed)
	j.left = left
	table := comm.NewClients(append(make([]wire.ClientRank, 100), clients...))
	groups := []*comm.Group{comm.NewGroup(100, left), comm.NewGroup(comm.Proc(100+left), len(clients)-left)}
	for i, p := range j.planners {
		side := 0
		if i >= left {
			side = 1
		}
		c, err := comm.New(comm.Spec{Context: testContext, Group: groups[side], Remote: groups[1-side],
			Self: comm.Proc(100 + i), Clients: table})
		if err != nil {
			t.Fatal(err)
		}
		j.planners[i] = NewInterPlanner(c, comm.NewMasters(groups[1-side], table), p.profile)
	}
	return j
}

// garbage is scratch memory as an earlier operation may have left it.
func garbage() []byte {
	b := alloc(1 << 16)
	words := datatype.View[uint64](b)
	for i := range words {
		words[i] = 0x9e3779b97f4a7c15 * uint64(i+1)
	}
	return b
}

// process is one rank's progress through its schedule.
type process struct {
	rank  int
	steps []Step
	at    int
	open  []*message // of this round
	done  bool
	ways  int // messages between clients that what it does now has waited for, one after the other
}

// message is one side of a message.
type message struct {
	src, dst int
	tag      wire.Tag
	context  wire.ContextID
	send     bool
	buf      []byte
	content  []byte // what buf had when the send began, or has received
	ways     int    // of the sender; for a receive once it is complete, with this message
	complete bool
}

func (m *message) String() string {
	return fmt.Sprintf("%d->%d tag %d context %d, %d bytes", m.src, m.dst, m.tag, m.context, len(m.buf))
}

// run plans with plan for every rank and executes all of it.
func (j *job) run(plan func(rank int, p *Planner, s *Schedule) error) {
	j.t.Helper()
	j.trace, j.ways = nil, 0
	j.levels, j.most, j.sent = [3]traffic{}, 0, map[[2]int]int{}
	procs := make([]*process, len(j.planners))
	for r, p := range j.planners {
		procs[r] = &process{rank: r}
		if err := plan(r, p, &j.scheds[r]); err != nil {
			j.t.Fatalf("rank %d: %v", r, err)
		}
	}
	var sends, recvs []*message
	idle := 0
	for alive := len(procs); alive > 0; {
		moved, rests := false, false
		for _, i := range j.rng.Perm(len(procs)) {
			p := procs[i]
			if p.done {
				continue
			}
			if j.rng.IntN(4) > 0 { // else all would keep step
				rests = true
				continue
			}
			if !j.step(p, &sends, &recvs) {
				continue
			}
			moved = true
			if p.done {
				alive--
			}
		}
		if idle++; moved {
			idle = 0
		}
		if !moved && (!rests || idle > 1000) {
			j.t.Fatalf("deadlock; unmatched sends %v, receives %v", sends, recvs)
		}
	}
	if len(sends)+len(recvs) > 0 {
		j.t.Fatalf("left over: sends %v, receives %v", sends, recvs)
	}
}

// step moves one process on if it can.
func (j *job) step(p *process, sends, recvs *[]*message) bool {
	j.t.Helper()
	if p.at < len(p.steps) {
		j.do(p, &p.steps[p.at], sends, recvs)
		p.at++
		return true
	}
	for _, m := range p.open {
		if !m.complete {
			return false
		}
	}
	for _, m := range p.open {
		if !bytes.Equal(m.buf, m.content) {
			j.t.Fatalf("rank %d: buffer changed during the round of %v", p.rank, m)
		}
		p.ways = max(p.ways, m.ways)
		j.ways = max(j.ways, p.ways)
	}
	p.open = nil
	steps, err := j.scheds[p.rank].Next()
	if err != nil {
		j.t.Fatalf("rank %d: %v", p.rank, err)
	}
	p.steps, p.at = steps, 0
	p.done = len(steps) == 0
	return true
}

func (j *job) do(p *process, t *Step, sends, recvs *[]*message) {
	j.t.Helper()
	if t.Local() {
		if Overlap(t.Src, t.Dst) && !(t.Action == Decode && same(t.Src, t.Dst)) {
			j.t.Fatalf("rank %d: %v of overlapping buffers", p.rank, t.Action)
		}
		if t.Action == Copy && len(t.Dst) < len(t.Src) {
			j.t.Fatalf("rank %d: copy of %d bytes into %d", p.rank, len(t.Src), len(t.Dst))
		}
		if err := t.Run(); err != nil {
			j.t.Fatalf("rank %d: %v: %v", p.rank, t.Action, err)
		}
		return
	}
	if t.Action == Joint {
		j.join(p, t)
		return
	}
	m := &message{src: p.rank, dst: j.member(p.rank, t), tag: t.Tag, context: t.Context, send: t.Action == Send, buf: t.Src}
	if m.dst == p.rank {
		j.t.Fatalf("rank %d talks to itself", p.rank)
	}
	if m.send {
		j.checkTag(m)
		j.count(m)
		m.content = bytes.Clone(t.Src)
		m.complete = !j.sync
		m.ways = p.ways
		*sends = append(*sends, m)
	} else {
		m.src, m.dst, m.buf = m.dst, m.src, t.Dst
		for i := range m.buf {
			m.buf[i] = 0xa5
		}
		*recvs = append(*recvs, m)
	}
	p.open = append(p.open, m)
	j.match(sends, recvs, m)
}

// checkTag holds messages to the rules about who may see which.
func (j *job) checkTag(m *message) {
	j.t.Helper()
	foreign := j.clients[m.src] != j.clients[m.dst]
	across := j.left > 0 && (m.src < j.left) != (m.dst < j.left)
	if between := m.tag >= tagInterBarrier && m.tag < inner; across != between || !across && foreign != (m.tag < inner) {
		j.t.Fatalf("tag of the wrong side: %v", m)
	}
	onPointToPoint := m.context == testContext
	if m.context != testContext+1 && !onPointToPoint || onPointToPoint && !(foreign && m.tag == tagReduce) {
		j.t.Fatalf("wrong context: %v", m)
	}
	if foreign {
		line := fmt.Sprintf("%d->%d %d %d", m.src, m.dst, m.tag, len(m.buf))
		if onPointToPoint {
			line += " p2p"
		}
		j.trace = append(j.trace, line)
	}
}

// host is where a member is: its client, and the host there.
func (j *job) host(i int) [2]int {
	at := [2]int{int(j.clients[i])}
	if h := j.planners[i].profile.Hosts; h != nil {
		at[1] = int(h.Of(comm.Proc(100 + i)))
	}
	return at
}

// count counts a message by the level that it passes.
func (j *job) count(m *message) {
	from, to := j.host(m.src), j.host(m.dst)
	level := 0
	switch {
	case from[0] != to[0]:
		level = 2
	case from != to:
		level = 1
	}
	j.levels[level].messages++
	j.levels[level].bytes += len(m.buf)
	if level > 0 && j.sent != nil {
		j.sent[from] += len(m.buf)
		j.most = max(j.most, j.sent[from])
	}
}

// match completes the pair that the new message belongs to. Messages of one
// pair, tag and context do not overtake each other.
func (j *job) match(sends, recvs *[]*message, m *message) {
	j.t.Helper()
	s, r := j.first(*sends, m), j.first(*recvs, m)
	if s < 0 || r < 0 {
		return
	}
	from, to := (*sends)[s], (*recvs)[r]
	if len(from.buf) != len(to.buf) {
		j.t.Fatalf("%v was sent, %v is expected", from, to)
	}
	if j.sync && !bytes.Equal(from.buf, from.content) {
		j.t.Fatalf("changed before it was sent: %v", from)
	}
	copy(to.buf, from.content)
	to.content = from.content
	to.ways = from.ways
	if j.clients[from.src] != j.clients[from.dst] {
		to.ways++
	}
	from.complete, to.complete = true, true
	*sends = append((*sends)[:s:s], (*sends)[s+1:]...)
	*recvs = append((*recvs)[:r:r], (*recvs)[r+1:]...)
}

// first finds the message that like is matched with: sources are known by their
// ranks.
func (j *job) first(list []*message, like *message) int {
	for i, m := range list {
		if j.place(m.src) == j.place(like.src) && m.dst == like.dst && m.tag == like.tag && m.context == like.context {
			return i
		}
	}
	return -1
}

// layouts are client assignments worth trying for n ranks: one client, and
// random ones of up to six.
func layouts(n int, rng *rand.Rand) [][]wire.ClientRank {
	out := [][]wire.ClientRank{make([]wire.ClientRank, n)}
	for range 3 {
		m := 1 + rng.IntN(min(n, 6))
		l := make([]wire.ClientRank, n)
		for i := range l {
			l[i] = wire.ClientRank(rng.IntN(m))
		}
		out = append(out, l)
	}
	each := make([]wire.ClientRank, n)
	for i := range each {
		each[i] = wire.ClientRank(n - 1 - i)
	}
	return append(out, each)
}

// someHosts puts n members on up to five hosts, one after the other, dealt out or
// anyhow.
func someHosts(n int, rng *rand.Rand) *comm.Clients {
	hosts := make([]wire.ClientRank, 100+n)
	h, how := 1+rng.IntN(5), rng.IntN(3)
	for i := range n {
		hosts[100+i] = wire.ClientRank([]int{i * h / n, i % h, rng.IntN(h)}[how])
	}
	return comm.NewClients(hosts)
}

// mixedReps gives pairs of clients all representations there are.
func mixedReps(a, b int) Peer {
	all := []datatype.Representation{datatype.External32, datatype.NativeLE, datatype.NativeBE, datatype.Native}
	return Peer{Rep: all[(a+b)%len(all)], ReduceOnPointToPoint: (a*b)%3 == 1}
}

// everywhere runs f for numbers of ranks, layouts and profiles, each both with
// buffered and with synchronous sends.
func everywhere(t *testing.T, f func(t *testing.T, j *job)) {
	for n := 1; n <= 17; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(n), 7))
			for i, l := range layouts(n, rng) {
				profile := Profile{XSize: []int{0, 24, 1024}[rng.IntN(3)], MaxLinear: rng.IntN(6)}
				if rng.IntN(2) == 0 {
					profile.Tuning = Tuning{-1, -1, -1, -1, -1, -1, -1, -1, 64, rng.IntN(9) - 1, rng.IntN(100) - 1, rng.IntN(12) - 1, rng.IntN(200) - 1, rng.IntN(100) - 1}
				}
				profile.AllImpi = rng.IntN(2) == 0
				if i%2 == 1 || n%3 == 0 {
					profile.Hosts = someHosts(n, rng)
				}
				j := newJob(t, l, profile, mixedReps, uint64(100*n+i))
				for _, j.sync = range []bool{false, true} {
					f(t, j)
				}
				j.withPhases(rng)
				f(t, j)
				if t.Failed() {
					t.Fatalf("with clients %v, profile %+v", l, profile)
				}
			}
		})
	}
}
