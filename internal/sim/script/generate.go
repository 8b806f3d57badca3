package script

import (
	"cmp"
	"fmt"
	"time"

	"pgregory.net/rapid"
)

// Options are settings for Generate.
type Options struct {
	Procs    int
	Worlds   []int                    // procs of each of several worlds, which meet and disconnect
	Spawns   []Spawn                  // spawns to include: their worlds, or why they fail, and their procs
	Hosts    func(world int) []string // returns the hosts that a spawn by a proc of a world may name
	DataLen  int                      // the job's C_DATALEN; many lengths are near it; 0: 1024
	Steps    int                      // about how many steps, or for several worlds how many operations; 0: 100
	MaxBytes int                      // maximum size of a message or a buffer; 0: suits DataLen
	Weights  Weights                  // zero: DefaultWeights or WorldsWeights
}

// Weights says how often each kind of operation is drawn.
type Weights struct {
	Messages      int // plain messages, in all modes, some persistent, probed or truncated
	Exchanges     int // Sendrecv in rings and chains
	Wildcards     int // messages of many procs to one, received from any source or with any tag
	Floods        int // many messages before the first receive
	Tokens        int // one message after the other around a ring, received from any source
	Shorts        int // short messages of one sender, received in another order
	Ready         int
	Cancels       int
	Buffers       int // attached memory, needed for buffered sends
	Collectives   int
	Communicators int // made and freed
	Nulls         int // MPI_PROC_NULL
	Pauses        int

	// Only for several worlds.
	Meets       int // at a port
	Spawns      int // those of Options.Spawns
	Idups       int // begun or ended
	Merges      int
	Intercomms  int
	Disconnects int
	Names       int // published, looked up
	AllPairs    int // each to each, on some communicators at the same time
}

// DefaultWeights are for programs of one world.
var DefaultWeights = Weights{
	Messages: 30, Exchanges: 8, Wildcards: 6, Floods: 4, Tokens: 2, Shorts: 4, Ready: 4, Cancels: 6, Buffers: 4,
	Collectives: 20, Communicators: 8, Nulls: 2, Pauses: 10,
}

// WorldsWeights are for programs of several worlds.
var WorldsWeights = Weights{
	Messages: 8, Exchanges: 2, Wildcards: 4, Floods: 1, Shorts: 1, Ready: 2, Cancels: 3, Buffers: 1,
	Collectives: 8, Communicators: 20, Nulls: 1, Pauses: 4,
	Meets: 30, Spawns: 20, Idups: 26, Merges: 10, Intercomms: 12, Disconnects: 8, AllPairs: 18, Names: 24,
}

// Generate draws a legal program. The same options and draws give the same program.
func Generate(t *rapid.T, o Options) *Program {
	o = o.withDefaults()
	g := &generator{
		Draws: &Draws{t}, o: o, procs: o.Procs, comms: newComms(o.Worlds...), byMatch: map[matchKey][]*flight{},
		memory: make([]int, o.Procs), buffered: make([][]*flight, o.Procs), wild: map[string]map[int]bool{}, tag: firstFresh,
	}
	for r := range g.memory {
		g.memory[r] = never
	}
	for _, s := range o.Spawns {
		for _, c := range g.comms.of(s.World) {
			c.live = false
		}
	}
	g.run()
	p := &Program{Procs: o.Procs, Steps: g.steps}
	if len(o.Worlds) > 1 {
		p.Worlds = o.Worlds
	}
	for _, f := range g.all {
		p.Messages = append(p.Messages, f.m)
	}
	return p
}

func (o Options) withDefaults() Options {
	o.DataLen = cmp.Or(o.DataLen, 1024)
	o.Steps = cmp.Or(o.Steps, 100)
	o.MaxBytes = cmp.Or(o.MaxBytes, min(max(200, 4*o.DataLen+16), 1<<20))
	if len(o.Worlds) == 0 {
		o.Worlds = []int{o.Procs}
	}
	if o.Weights == (Weights{}) && len(o.Worlds) > 1 {
		o.Weights = WorldsWeights
	} else if o.Weights == (Weights{}) {
		o.Weights = DefaultWeights
	}
	return o
}

const (
	sharedTags = 5   // tags below are used again and again
	firstFresh = 100 // tags from here on are used once
)

type generator struct {
	*Draws
	o     Options
	procs int
	steps []Step
	comms *comms

	all     []*flight // every message
	open    []*flight // messages under way
	byMatch map[matchKey][]*flight
	tag     int
	names   int
	slots   int
	ids     int   // of collective operations
	ports   []int // the procs that have opened them; -1: closed
	severed []int // procs whose nodes have no connection to name servers

	memory   []int // by rank: free attached memory, or never if there is none
	buffered [][]*flight
	wild     map[string]map[int]bool // by communicator for wildcards: receivers that need a barrier first
}

func (g *generator) emit(s Step) { g.steps = append(g.steps, s) }

func (g *generator) fresh() int {
	g.tag++
	if g.tag >= TagLimit {
		g.tag = firstFresh
	}
	return g.tag
}

func (g *generator) run() {
	w, m, begun := g.o.Weights, &meeting{g}, 0
	begin := []struct {
		weight int
		do     func()
	}{
		{w.Messages, g.plain}, {w.Exchanges, g.ring}, {w.Wildcards, g.burst}, {w.Floods, g.flood}, {w.Tokens, func() { token(g) }}, {w.Shorts, func() { shortOnes(g) }}, {w.Ready, g.ready},
		{w.Cancels, g.cancel}, {w.Buffers, g.buffer}, {w.Collectives, g.collective}, {w.Communicators, g.communicator},
		{w.Nulls, g.null}, {w.Pauses, g.pause},
		{w.Meets, m.meet}, {w.Spawns, m.spawn}, {w.Idups, m.idup}, {w.Merges, m.merge}, {w.Intercomms, m.intercomm}, {w.Disconnects, m.disconnect}, {w.AllPairs, m.allPairs}, {w.Names, m.service},
	}
	total := 0
	for _, b := range begin {
		total += b.weight
	}
	g.Repeat(128, func() bool {
		if g.comms.several() {
			return begun < g.o.Steps
		}
		return len(g.steps) < g.o.Steps && total > 0
	}, func() {
		begun++
		n := g.IntN(total)
		for _, b := range begin {
			if n -= b.weight; n < 0 {
				b.do()
				break
			}
		}
		for range g.IntN(4) + len(g.open)/16 {
			g.advance(g.IntN(len(g.open) + 1))
		}
	})
	for range g.o.Spawns {
		m.spawn()
	}
	g.drain()
	if g.comms.several() {
		m.part()
	}
	for r := range g.memory {
		g.detach(r)
	}
	m.fail()
}

func (g *generator) drain() {
	for i := 0; len(g.open) > 0; i++ {
		g.advance(g.IntN(len(g.open)))
		g.advance(i % (len(g.open) + 1)) // so that the loop ends whatever is drawn
	}
}

// comm picks a communicator; wild says whether it is one for wildcard tags.
func (g *generator) comm(wild bool) *group {
	var list []*group
	selfs := g.comms.several() && g.OneIn(8)
	for _, c := range g.comms.all {
		if c.live && (g.wild[c.name] != nil) == wild && (selfs || !g.comms.self(c)) {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return Pick(g.Draws, list...)
}

// any picks a communicator for operations that messages do not disturb.
func (g *generator) any() *group {
	if g.OneIn(4) {
		if c := g.comm(true); c != nil {
			return c
		}
	}
	return g.comm(false)
}

func (g *generator) name() string {
	g.names++
	if g.comms.several() { // c1 would be a proc's name
		return fmt.Sprintf("x%d", g.names)
	}
	return fmt.Sprintf("c%d", g.names)
}

func (g *generator) pause() {
	d := time.Duration(1+g.IntN(1000)) * [...]time.Duration{time.Nanosecond, time.Microsecond, 20 * time.Microsecond}[g.IntN(3)]
	g.emit(Pause{g.comms.started(g.IntN(g.procs)), d})
}

func (g *generator) null() {
	c := g.any()
	g.emit(Null{Pick(g.Draws, c.all()...), c.name, NullCall(g.IntN(len(nullNames)))})
}

// buffer attaches memory to a rank that has none, or detaches it if that is possible.
func (g *generator) buffer() {
	r := g.comms.started(g.IntN(g.procs))
	if g.memory[r] != never {
		g.detach(r)
		return
	}
	g.memory[r] = 2*g.o.MaxBytes + g.IntN(8)*(g.o.DataLen+1000)
	g.emit(Attach{r, g.memory[r]})
}

// detach detaches the memory of a rank, unless messages may still be in it.
func (g *generator) detach(r int) {
	if g.memory[r] == never {
		return
	}
	for _, f := range g.buffered[r] {
		if !f.sent || !f.posted() {
			return
		}
	}
	g.memory[r], g.buffered[r] = never, nil
	g.emit(Detach{r})
}

var plainKinds = []Kind{
	Uint8, Uint8, Uint8, Int8, Int16, Int32, Int64, Int, Uint16, Uint32, Uint64, Uint, Float32, Float64, Complex64, Complex128,
	Bool, PairInt32, PairFloat64,
}

func (g *generator) kind() Kind { return Pick(g.Draws, plainKinds...) }

// length picks a number of elements; share buffers of that length must fit into the largest buffer.
func (g *generator) length(k Kind, share int) int {
	d, most := g.o.DataLen, g.o.MaxBytes/share
	bytes := g.IntN(64)
	edges := 2
	if d > 16<<10 {
		edges = 6 // bounds the bytes of a program
	}
	if g.OneIn(edges) {
		bytes = Pick(g.Draws, []int{0, 1, k.Size(), d - 1, d, d + 1, d + k.Size(), 2 * d, 3*d - 1, 2 + g.IntN(4*d+1)}...)
	}
	return min(bytes, most) / k.Size()
}
