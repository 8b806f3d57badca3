package chaos

import (
	"math"
	"math/rand/v2"
	"time"
)

// plan decides what happens to the bytes of one direction of one link. Its
// decisions are a function of the seed, the link's number and the bytes' offsets.
type plan struct {
	f      Faults
	offset int64

	pieces   *rand.Rand
	pieceEnd int64
	jitter   time.Duration // of the present piece

	stalls  *rand.Rand
	stallAt int64

	cutAt int64
}

// never is an offset that no stream reaches.
const never = math.MaxInt64

func newPlan(f Faults, number uint64) *plan {
	// One generator for each kind of fault, so that changing one setting leaves the other
	// faults where they are.
	source := func(kind uint64) *rand.Rand { return rand.New(rand.NewPCG(f.Seed, number<<2|kind)) }
	p := &plan{f: f, pieces: source(0), stalls: source(1), stallAt: never, cutAt: never}
	if f.StallEvery > 0 {
		p.stallAt = about(p.stalls, f.StallEvery)
	}
	if f.CutBytes > 0 {
		p.cutAt = about(source(2), f.CutBytes)
	}
	return p
}

// about returns half to one and a half of n, at least 1.
func about(r *rand.Rand, n int64) int64 { return max(n/2+r.Int64N(n)+n%2, 1) }

// step is what happens to the next n bytes: nothing is sent for the time stall, and then
// they take jitter longer. If cut is set there are no bytes, and the link breaks.
type step struct {
	n             int
	stall, jitter time.Duration
	cut           bool
}

// next decides about the next bytes, of which there are n, at least 1.
func (p *plan) next(n int) (s step) {
	if p.offset >= p.cutAt {
		return step{cut: true}
	}
	if p.offset == p.stallAt {
		s.stall = time.Duration(about(p.stalls, int64(p.f.Stall)))
		p.stallAt += about(p.stalls, p.f.StallEvery)
	}
	if p.offset == p.pieceEnd {
		p.pieceEnd += 1 + p.pieces.Int64N(int64(max(p.f.Piece, 1)))
		if p.f.Jitter > 0 {
			p.jitter = time.Duration(p.pieces.Int64N(int64(p.f.Jitter) + 1))
		}
	}
	s.jitter = p.jitter
	s.n = int(min(int64(n), p.pieceEnd-p.offset, p.stallAt-p.offset, p.cutAt-p.offset))
	p.offset += int64(s.n)
	return s
}
