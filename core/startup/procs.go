package startup

import (
	"bytes"
	"cmp"
	"iter"
	"math"
	"slices"
	"sort"

	"github.com/openimpi/impi/core/wire"
)

// Procs lists the procs of a job by their rank in MPI_COMM_WORLD. It uses about 64 bytes and a card
// for each host, and 2 bytes for each proc of a host whose PIDs are not equally spaced. It may
// refer to the bytes of a table: see Table. The zero value has no procs.
type Procs struct {
	runs    []procRun // by first
	order   []int32   // the runs by host ID and PID; empty: see Index
	ends    []uint32  // ends of cards in text; the first card begins at 0
	offsets []int16   // of the PIDs of runs that have any
	text    []byte
	n       int
}

// procRun is consecutive ranks of one host with one card and ascending PIDs: that of the i-th is
// pid + i*step plus its offset. It is as it is in a table.
type procRun struct {
	id      wire.HostID
	pid     int64
	step    int64
	first   wire.WorldRank
	n       int32
	host    wire.HostRank
	client  wire.ClientRank
	card    int32 // index into ends; absent: nil
	offsets int32 // index into offsets of the first one; absent: all are 0
}

const absent = -1

// maxStep keeps multiples of steps within 64 bits.
const maxStep = 1 << 40

// ProcRun is procs with consecutive ranks that differ in nothing known except their PIDs.
type ProcRun struct {
	First   wire.WorldRank
	N       int
	Address []byte // the host half of their identities, not to be changed

	ProcInfo // of the run's first proc
}

// ListProcs makes the list of procs in the order of their ranks.
func ListProcs(all ...ProcInfo) (p Procs) {
	for _, x := range all {
		p.Add(x)
	}
	return p
}

// Len returns the number of procs.
func (p *Procs) Len() int { return p.n }

// Add appends the proc of the next rank. It copies the card. It must not be called for the procs of
// a table.
func (p *Procs) Add(x ProcInfo) {
	defer func() { p.n++ }()
	p.order = nil
	if k := len(p.runs) - 1; k >= 0 && p.extend(&p.runs[k], &x) {
		return
	}
	r := procRun{id: x.ID.Host, pid: x.ID.PID, first: wire.WorldRank(p.n), n: 1, host: x.Host, client: x.Client, card: absent, offsets: absent}
	if k := len(p.ends) - 1; x.Card != nil {
		if k < 0 || !bytes.Equal(p.card(int32(k)), x.Card) {
			p.text = append(p.text, x.Card...)
			p.ends = append(p.ends, uint32(len(p.text)))
		}
		r.card = int32(len(p.ends) - 1)
	}
	p.runs = append(p.runs, r)
}

func (p *Procs) extend(r *procRun, x *ProcInfo) bool {
	card := p.card(r.card)
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
	if off != 0 && r.offsets == absent {
		r.offsets = int32(len(p.offsets))
		p.offsets = append(p.offsets, make([]int16, r.n)...)
	}
	if r.offsets != absent {
		p.offsets = append(p.offsets, int16(off))
	}
	r.n++
	return true
}

func (p *Procs) card(i int32) []byte {
	if i == absent {
		return nil
	}
	from, to := uint32(0), p.ends[i]
	if i > 0 {
		from = p.ends[i-1]
	}
	if from == to {
		return []byte{} // text may be nil
	}
	return p.text[from:to:to]
}

func (p *Procs) pid(r *procRun, i int32) int64 {
	pid := r.pid + int64(i)*r.step
	if r.offsets != absent && i > 0 { // the offset of the first PID is 0
		pid += int64(p.offsets[r.offsets+i])
	}
	return pid
}

func (p *Procs) run(rank wire.WorldRank) *procRun {
	// Most jobs have the same number of procs on each host.
	if k := int(rank) * len(p.runs) / p.n; k < len(p.runs) && p.runs[k].first <= rank && rank-p.runs[k].first < wire.WorldRank(p.runs[k].n) {
		return &p.runs[k]
	}
	return &p.runs[sort.Search(len(p.runs), func(k int) bool { return p.runs[k].first > rank })-1]
}

// At returns the proc of a rank, which must exist. The caller must not change its card.
func (p *Procs) At(rank wire.WorldRank) ProcInfo {
	r := p.run(rank)
	return p.info(r, int32(rank-r.first))
}

func (p *Procs) info(r *procRun, i int32) ProcInfo {
	return ProcInfo{ID: wire.Proc{Host: r.id, PID: p.pid(r, i)}, Client: r.client, Host: r.host, Card: p.card(r.card)}
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

// Run returns the run of procs that contains a rank, which must exist.
func (p *Procs) Run(rank wire.WorldRank) ProcRun { return p.describe(p.run(rank)) }

// Runs yields the runs by ascending rank. It allocates nothing for them.
func (p *Procs) Runs() iter.Seq[ProcRun] {
	return func(yield func(ProcRun) bool) {
		for k := range p.runs {
			if !yield(p.describe(&p.runs[k])) {
				return
			}
		}
	}
}

func (p *Procs) describe(r *procRun) ProcRun {
	return ProcRun{First: r.first, N: int(r.n), Address: r.id[:], ProcInfo: p.info(r, 0)}
}

// Index prepares Find. The owner of a copy of p must call Index for that too, if p was changed
// since.
func (p *Procs) Index() {
	if len(p.order) == len(p.runs) {
		return
	}
	p.order = make([]int32, len(p.runs))
	for k := range p.order {
		p.order[k] = int32(k)
	}
	slices.SortFunc(p.order, p.compare)
}

// compare orders runs by host ID and PID, and by rank if all of that is equal.
func (p *Procs) compare(a, b int32) int {
	x, y := &p.runs[a], &p.runs[b]
	return cmp.Or(bytes.Compare(x.id[:], y.id[:]), cmp.Compare(x.pid, y.pid), cmp.Compare(a, b))
}

// Find returns the rank and the host of the proc with an identity. ok is false if no proc has it.
// Index must have been called.
func (p *Procs) Find(id wire.Proc) (rank wire.WorldRank, host wire.HostRank, ok bool) {
	low, high := 0, len(p.order) // of the runs in order; runs from high on begin after id
	for low < high {
		mid := int(uint(low+high) / 2)
		r := &p.runs[p.order[mid]]
		if c := bytes.Compare(r.id[:], id.Host[:]); c > 0 || c == 0 && r.pid > id.PID {
			high = mid
		} else {
			low = mid + 1
		}
	}
	for high--; high >= 0; high-- { // runs of one host may interleave
		r := &p.runs[p.order[high]]
		if r.id != id.Host {
			break
		}
		if i, ok := p.within(r, id.PID); ok {
			return r.first + wire.WorldRank(i), r.host, true
		}
	}
	return 0, 0, false
}

// within returns which proc of a run has a PID that is not below its first.
func (p *Procs) within(r *procRun, pid int64) (i int32, ok bool) {
	if r.offsets == absent {
		ahead := uint64(pid) - uint64(r.pid)
		if r.n > 1 {
			ahead, ok = ahead/uint64(r.step), ahead%uint64(r.step) == 0
			return int32(ahead), ok && ahead < uint64(r.n)
		}
		return 0, ahead == 0
	}
	if pid > p.pid(r, r.n-1) {
		return 0, false
	}
	i = int32(sort.Search(int(r.n), func(i int) bool { return p.pid(r, int32(i)) >= pid }))
	return i, p.pid(r, i) == pid // i is one, as the last one is not below pid
}
