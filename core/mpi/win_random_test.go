package mpi

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/internal/engine/construct"
	"pgregory.net/rapid"
)

// move is one operation of a random schedule. All ranks know all moves, and so
// what every memory holds after each epoch.
type move struct {
	origin, target int
	at, n, stride  int // elements of the target
	kind           moveKind
	values         []int64 // what the origin gives
	before         []int64 // what is there when the epoch begins
	got            []int64
	apart          bool // the origin's elements are not one run
}

type moveKind int

const (
	putting moveKind = iota
	getting
	adding
	raising
	replacing
	swapping // GetAccumulate by Replace
	noMoves
)

// schedule draws the moves of an epoch, in which nobody's moves are in the way of
// anybody else's but for accumulates of one operation.
func schedule(r *rand.Rand, memory [][]int64, may func(origin, target int) bool) (moves []move) {
	for target, mem := range memory {
		for at := 0; at < len(mem); {
			n, stride := 1+r.IntN(20), 1+r.IntN(2)
			if r.IntN(8) == 0 {
				n = 1 + r.IntN(400)
			}
			if at+n*stride > len(mem) {
				break
			}
			kind, origins := moveKind(r.IntN(int(noMoves))), 1
			if kind == getting || kind == adding || kind == raising {
				origins = 1 + r.IntN(3)
			}
			for range origins {
				m := move{origin: r.IntN(len(memory)), target: target, at: at, n: n, stride: stride, kind: kind, apart: r.IntN(3) == 0}
				if may(m.origin, target) {
					m.draw(r, mem)
					moves = append(moves, m)
				}
			}
			at += n*stride + r.IntN(4)
		}
	}
	r.Shuffle(len(moves), func(i, j int) { moves[i], moves[j] = moves[j], moves[i] })
	for i := range moves {
		moves[i].apply(memory[moves[i].target])
	}
	return moves
}

func (m *move) draw(r *rand.Rand, mem []int64) {
	m.values, m.before = make([]int64, m.n), make([]int64, m.n)
	for i := range m.values {
		m.values[i], m.before[i] = int64(r.IntN(1000)-500), mem[m.at+i*m.stride]
	}
}

// apply is the reference.
func (m *move) apply(mem []int64) {
	for i, v := range m.values {
		x := &mem[m.at+i*m.stride]
		switch m.kind {
		case putting, replacing, swapping:
			*x = v
		case adding:
			*x += v
		case raising:
			*x = max(*x, v)
		case getting, noMoves:
		}
	}
}

// begin is the operation.
func (m *move) begin(w *Win) error {
	element := datatype.Basic(datatype.Int64)
	to := Target{m.target, int64(m.at), m.n, element}
	if m.stride > 1 {
		t, err := datatype.Vector(int64(m.n), 1, int64(m.stride), element)
		if err = errors.Join(err, t.Commit()); err != nil {
			return err
		}
		to.Count, to.Type = 1, t
	}
	mine, err := m.buffer(m.values)
	if err != nil {
		return err
	}
	m.got = make([]int64, m.n)
	switch m.kind {
	case putting:
		return w.Put(mine, to)
	case getting:
		return w.Get(Of(m.got), to)
	case adding:
		return w.Accumulate(mine, to, Sum)
	case raising:
		return w.Accumulate(mine, to, Max)
	case replacing:
		return w.Accumulate(mine, to, Replace)
	default:
		return w.GetAccumulate(mine, Of(m.got), to, Replace)
	}
}

// buffer has values in one run, or with gaps.
func (m *move) buffer(values []int64) (Buffer, error) {
	if !m.apart {
		return Of(values), nil
	}
	wide := make([]int64, 3*len(values))
	for i, v := range values {
		wide[3*i] = v
	}
	t, err := datatype.Resized(datatype.Basic(datatype.Int64), 0, 24)
	return Typed(wide, len(values), t), errors.Join(err, t.Commit())
}

func (m *move) check() error {
	if (m.kind == getting || m.kind == swapping) && !slices.Equal(m.got, m.before) {
		return fmt.Errorf("%d elements %d apart at %d of rank %d were %v, got %v", m.n, m.stride, m.at, m.target, m.before, m.got)
	}
	return nil
}

// manner is how an epoch is opened and closed: by members that may or may not
// access each other.
type manner func(w *Win, may func(origin, target int) bool, moves func(target int) error) error

// each begins the moves at all targets.
func each(w *Win, moves func(int) error) error {
	for target := range w.Size() {
		if err := moves(target); err != nil {
			return err
		}
	}
	return nil
}

var manners = map[string]manner{
	"fence": func(w *Win, _ func(int, int) bool, moves func(int) error) error {
		return errors.Join(each(w, moves), w.Fence(0))
	},
	"start": func(w *Win, may func(int, int) bool, moves func(int) error) error {
		all, err := w.Group()
		if err != nil {
			return err
		}
		var to, from []int
		for rank := range w.Size() {
			if may(w.Rank(), rank) {
				to = append(to, rank)
			}
			if may(rank, w.Rank()) {
				from = append(from, rank)
			}
		}
		targets, err1 := all.Incl(to)
		origins, err2 := all.Incl(from)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		if err := errors.Join(w.Post(origins, 0), w.Start(targets, 0), each(w, moves), w.Complete()); err != nil {
			return err
		}
		if w.Rank()%2 == 0 {
			return w.Wait()
		}
		for {
			if done, err := w.Test(); done || err != nil {
				return err
			}
		}
	},
	"lock": func(w *Win, may func(int, int) bool, moves func(int) error) error {
		for target := range w.Size() {
			if !may(w.Rank(), target) {
				continue
			}
			kind := LockShared
			if target%2 == 0 {
				kind = LockExclusive
			}
			if err := errors.Join(w.Lock(kind, target, 0), moves(target), w.Unlock(target)); err != nil {
				return err
			}
		}
		return construct.PlainBarrier(w.in().Comm())
	},
	"lock all": func(w *Win, _ func(int, int) bool, moves func(int) error) error {
		return errors.Join(w.LockAll(0), each(w, moves), w.FlushAll(), construct.PlainBarrier(w.in().Comm()), w.UnlockAll(), construct.PlainBarrier(w.in().Comm()))
	},
}

// TestWindowsAtRandom: whatever is begun in whichever epochs, memory and what is
// got are those of one who does it all in a row.
func TestWindowsAtRandom(t *testing.T) {
	for name, how := range manners {
		t.Run(name, func(t *testing.T) {
			left := 12 // a job each
			rapid.Check(t, func(rt *rapid.T) {
				if left--; left < 0 {
					return
				}
				seed := rapid.Uint64().Draw(rt, "seed")
				procs := rapid.IntRange(1, 5).Draw(rt, "procs")
				l := orders(procs, rapid.SampledFrom([]string{"", "native-be", "native-le"}).Draw(rt, "representation"))
				l.dataLen = rapid.SampledFrom([]uint32{0, 16, 1000}).Draw(rt, "packet")
				l.run(t, func(_ *testing.T, c *Comm) error {
					if err := atRandom(c, seed, how); err != nil {
						return fmt.Errorf("seed %d: %w", seed, err)
					}
					return nil
				})
			})
		})
	}
}

// atRandom runs some epochs with the moves that a seed says.
func atRandom(c *Comm, seed uint64, how manner) error {
	r := rand.New(rand.NewPCG(seed, 0))
	memory := make([][]int64, c.Size())
	for i := range memory {
		memory[i] = make([]int64, 20+r.IntN(1000))
	}
	mine := make([]int64, len(memory[c.Rank()]))
	w, err := WinCreate(c, mine, nil)
	if err != nil {
		return err
	}
	if err := w.Fence(NoPrecede); err != nil {
		return err
	}
	for epoch := range 4 {
		allowed := r.Uint64() | r.Uint64()
		may := func(origin, target int) bool { return allowed>>(origin*8+target)&1 != 0 }
		moves := schedule(r, memory, may)
		if err := how(w, may, func(target int) (err error) {
			for i := range moves {
				if m := &moves[i]; m.origin == c.Rank() && m.target == target {
					err = errors.Join(err, m.begin(w))
				}
			}
			return err
		}); err != nil {
			return err
		}
		for i := range moves {
			if moves[i].origin == c.Rank() {
				err = errors.Join(err, moves[i].check())
			}
		}
		if !slices.Equal(mine, memory[c.Rank()]) {
			err = errors.Join(err, fmt.Errorf("epoch %d: memory is %v, want %v", epoch, mine, memory[c.Rank()]))
		}
		if err := errors.Join(err, construct.PlainBarrier(w.in().Comm())); err != nil { // nobody goes on before all have looked
			return err
		}
	}
	return errors.Join(w.Fence(NoSucceed), w.Free())
}
