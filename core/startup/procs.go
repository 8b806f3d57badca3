package startup

import (
	"bytes"
	"iter"
	"math"
	"sort"

	"github.com/openimpi/impi/core/wire"
)

// Procs lists the procs of a job by their rank in MPI_COMM_WORLD. It takes about 64 bytes for each
// host with its card, and 2 for each of its procs whose process IDs are not equally spaced. The zero
// value has none.
type Procs struct {
	runs    []procRun // by first
	offsets []int16   // of the PIDs of runs that have any
	cards   [][]byte
	last    map[wire.HostID]int32 // the last run with that ID
	n       int
}

// procRun is consecutive ranks of one host with one card and ascending PIDs: that of the i-th is
// pid + i*step plus its offset.
type procRun struct {
	id      wire.HostID
	pid     int64
	step    int64
	first   wire.WorldRank
	n       int32
	host    wire.HostRank
	client  wire.ClientRank
	card    int32 // NoRank: nil
	offsets int32 // index into offsets of the first one; NoRank: all are 0
	before  int32 // index of the run before that has the same host ID, or NoRank
}

// maxStep keeps multiples of steps within 64 bits.
const maxStep = 1 << 40

// ListProcs makes the list of procs in the order of their ranks.
func ListProcs(all ...ProcInfo) (p Procs) {
	for _, x := range all {
		p.Add(x)
	}
	return p
}

// Len returns the number of procs.
func (p *Procs) Len() int { return p.n }

// Add appends the proc of the next rank. It copies the card.
func (p *Procs) Add(x ProcInfo) {
	defer func() { p.n++ }()
	if k := len(p.runs) - 1; k >= 0 && p.extend(&p.runs[k], &x) {
		return
	}
	r := procRun{id: x.ID.Host, pid: x.ID.PID, first: wire.WorldRank(p.n), n: 1, host: x.Host, client: x.Client, card: -1, offsets: -1, before: -1}
	if k := len(p.cards) - 1; x.Card != nil {
		if k < 0 || !bytes.Equal(p.cards[k], x.Card) {
			p.cards = append(p.cards, append([]byte{}, x.Card...))
		}
		r.card = int32(len(p.cards) - 1)
	}
	if p.last == nil {
		p.last = make(map[wire.HostID]int32)
	}
	if before, ok := p.last[r.id]; ok {
		r.before = before
	}
	p.last[r.id] = int32(len(p.runs))
	p.runs = append(p.runs, r)
}

// extend adds a proc to the last run, if it fits.
func (p *Procs) extend(r *procRun, x *ProcInfo) bool {
	card := p.cardOf(r)
	if r.host != x.Host || r.client != x.Client || r.id != x.ID.Host || (card == nil) != (x.Card == nil) || !bytes.Equal(card, x.Card) {
		return false
	}
	ahead := x.ID.PID - p.pid(r, r.n-1)
	if ahead <= 0 || ahead > maxStep || x.ID.PID < r.pid { // a difference of more than 63 bits is below 0
		return false
	}
	if r.n == 1 {
		r.step = ahead
	}
	off := x.ID.PID - (r.pid + int64(r.n)*r.step)
	if off < math.MinInt16 || off > math.MaxInt16 {
		return false
	}
	if off != 0 && r.offsets < 0 {
		r.offsets = int32(len(p.offsets))
		p.offsets = append(p.offsets, make([]int16, r.n)...)
	}
	if r.offsets >= 0 {
		p.offsets = append(p.offsets, int16(off))
	}
	r.n++
	return true
}

func (p *Procs) cardOf(r *procRun) []byte {
	if r.card < 0 {
		return nil
	}
	return p.cards[r.card]
}

// pid returns the PID of the i-th proc of a run.
func (p *Procs) pid(r *procRun, i int32) int64 {
	pid := r.pid + int64(i)*r.step
	if r.offsets >= 0 {
		pid += int64(p.offsets[r.offsets+i])
	}
	return pid
}

// At returns the proc of a rank, which must be one. Nobody may change its card.
func (p *Procs) At(rank wire.WorldRank) ProcInfo {
	k := sort.Search(len(p.runs), func(k int) bool { return p.runs[k].first > rank }) - 1
	return p.info(&p.runs[k], int32(rank-p.runs[k].first))
}

func (p *Procs) info(r *procRun, i int32) ProcInfo {
	return ProcInfo{ID: wire.Proc{Host: r.id, PID: p.pid(r, i)}, Client: r.client, Host: r.host, Card: p.cardOf(r)}
}

// All yields the procs by ascending rank.
func (p *Procs) All() iter.Seq2[wire.WorldRank, ProcInfo] {
	return func(yield func(wire.WorldRank, ProcInfo) bool) {
		for k := range p.runs {
			r := &p.runs[k]
			for i := range r.n {
				if !yield(r.first+wire.WorldRank(i), p.info(r, i)) {
					return
				}
			}
		}
	}
}

// Find returns the rank of an identity, and its host. ok is false if no proc has it.
func (p *Procs) Find(id wire.Proc) (rank wire.WorldRank, host wire.HostRank, ok bool) {
	k, ok := p.last[id.Host]
	for ; ok && k >= 0; k = p.runs[k].before {
		r := &p.runs[k]
		if id.PID < r.pid || id.PID > p.pid(r, r.n-1) {
			continue
		}
		i := int32(sort.Search(int(r.n), func(i int) bool { return p.pid(r, int32(i)) >= id.PID }))
		if p.pid(r, i) == id.PID {
			return r.first + wire.WorldRank(i), r.host, true
		}
	}
	return 0, 0, false
}

// Set replaces the proc of a rank. It takes as long as listing all of them again.
func (p *Procs) Set(rank wire.WorldRank, x ProcInfo) {
	var all Procs
	for r, old := range p.All() {
		if r == rank {
			old = x
		}
		all.Add(old)
	}
	*p = all
}
