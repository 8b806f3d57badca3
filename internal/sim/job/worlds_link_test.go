package job

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/openimpi/impi/core/mpi"
)

// TestWorldsResume: links between two jobs are cut all the time: nothing is lost, nothing comes
// twice, and nothing of them is left when the jobs have parted.
func TestWorldsResume(t *testing.T) {
	cut, resumed := 0, 0
	for seed := range seeds(60) {
		port := ""
		program := func(first bool) func(Env) error {
			return func(e Env) error {
				inter, err := couples(e, &port, first)
				if err != nil {
					return err
				}
				if err := talksAcross(inter); err != nil {
					return err
				}
				meet := e.World().Accept // again, by links of other sessions
				if !first {
					meet = e.World().Connect
				}
				if inter, err = meet(port, nil, 0); err != nil {
					return err
				}
				return talksAcross(inter)
			}
		}
		together, results := two(t, seed, WorldsConfig{
			Link: rough().Direct, DialFail: float64(seed%3) * 0.2, Resume: &Resume{Window: 200 + int(seed)*50, Cuts: 0.02, Limit: 10 * time.Second},
		}, program(true), program(false))
		for w, r := range results {
			if err := errors.Join(append(r.Procs(), r.Err)...); err != nil {
				t.Fatalf("seed %d, world %d: %v\n%s", seed, w, err, r.World.k.Trace())
			}
			cut += r.Faults()[CutLink]
		}
		resumed += together.Counts.Resumed
		if left := together.Left(); left != (Remains{}) {
			t.Fatalf("seed %d: %+v are left\n%s", seed, left, together.k.Trace())
		}
	}
	if cut < int(seeds(60)) || resumed < cut/2 {
		t.Errorf("%d cuts, %d links were resumed: nothing was shown", cut, resumed)
	}
}

// talksAcross has the procs of two jobs send each other much, and part.
func talksAcross(inter *mpi.Comm) error {
	n, err := inter.RemoteSize()
	if err != nil {
		return err
	}
	for round := range 6 {
		var open []mpi.Request
		in := make([][]int32, n)
		for peer := range n {
			out := slices.Repeat([]int32{int32(inter.Rank()), int32(round)}, 40)
			in[peer] = make([]int32, len(out))
			s, err := mpi.Isend(inter, out, peer, round)
			if err != nil {
				return err
			}
			r, err := mpi.Irecv(inter, in[peer], peer, round)
			if err != nil {
				return err
			}
			open = append(open, s, r)
		}
		if err := mpi.Waitall(open, nil); err != nil {
			return err
		}
		for peer := range n {
			if want := slices.Repeat([]int32{int32(peer), int32(round)}, 40); !slices.Equal(in[peer], want) {
				return fmt.Errorf("round %d: rank %d of the other side has sent %v", round, peer, in[peer])
			}
		}
	}
	return inter.Disconnect()
}
