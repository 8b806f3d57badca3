// Command survivor computes how heat spreads along a rod, and goes on without the procs that are
// lost meanwhile. The job file says survive = true, and the last site is lost in the middle of it:
// its procs end themselves.
//
// Every few steps all procs keep a copy of the whole rod. Those that notice a loss revoke the
// communicator, so that all of them leave the computation, and all agree on whether it is done. If
// not, they make another communicator by Shrink, divide the rod among themselves and go on from the
// last copy. With -replace they spawn as many procs as were lost
// first, with -spare NAME at a spare site of that name. With -twice one of those is lost later,
// too, and replaced. The result is the same to the last bit, whoever has computed what.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/openimpi/impi/core/mpi"
)

const (
	cells = 960  // of the rod
	steps = 3000 // in time
	every = 100  // steps between two copies
	again = 2250 // the step before which a site that was spawned for it is lost
)

var (
	doomed  = flag.Int64("at", 1550, "the step before which the last site is lost")
	replace = flag.Bool("replace", false, "spawn procs for those that are lost")
	twice   = flag.Bool("twice", false, "lose one of the spawned procs, too")
	spare   = flag.String("spare", "", "the spare site at which -replace spawns; empty: those that are left share their machine")
)

var (
	errResult = errors.New("wrong result")
	errOthers = errors.New("others have noticed a loss")
)

// state is a copy of the rod at a step. All procs have one, but not all have the latest.
type state struct {
	step int64
	rod  []float64

	spawned bool
	since   int64 // the step from which a spawned proc has gone on
}

func main() {
	flag.Parse()
	if err := run(); err != nil {
		mpi.Abort(1, "survivor: "+err.Error())
	}
}

func run() error {
	if err := mpi.Init(); err != nil {
		return err
	}
	s := state{rod: begin()}
	team, err := mpi.World().Dup()
	if parent := mpi.Parent(); parent != nil {
		s.spawned = true
		team, err = join(parent, true)
	}
	for err == nil {
		why := s.share(team)
		if why == nil {
			why = s.compute(team)
		}
		done, err := allDone(team, why)
		switch {
		case err != nil:
			return err
		case done:
			return s.report(team)
		}
		if team, err = rescue(team, why); err != nil {
			return err
		}
	}
	return err
}

// allDone reports whether all members that are left have computed to the end. Of a loss in the last
// step some may not notice anything, and others need them to go on. why is what has kept this
// member from the end, nil if nothing has; if it is not a loss it is returned.
func allDone(team *mpi.Comm, why error) (bool, error) {
	done := int32(1)
	switch {
	case errors.Is(why, mpi.ErrProcFailed), errors.Is(why, mpi.ErrRevoked):
		done = 0
		if err := team.Revoke(); err != nil { // the others may wait for procs that live
			return false, err
		}
	case why != nil:
		return false, why
	}
	all, err := team.Agree(done)
	if err != nil && !errors.Is(err, mpi.ErrProcFailed) { // all get the same answer after a loss, too
		return false, err
	}
	return all == 1, nil
}

// rescue makes a team of those that are left. why is what this member has noticed of the loss, if
// anything.
func rescue(team *mpi.Comm, why error) (*mpi.Comm, error) {
	left, err := team.Shrink()
	if err != nil {
		return nil, err
	}
	if left.Rank() == 0 {
		fmt.Printf("survivor: %d of %d procs are left: %v\n", left.Size(), team.Size(), cmp.Or(why, errOthers))
	}
	lost := team.Size() - left.Size()
	if err := team.Free(); err != nil || !*replace {
		return left, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	info := mpi.NewInfo()
	if *spare != "" {
		if err := info.Set("host", *spare); err != nil {
			return nil, err
		}
	}
	fresh, _, err := left.Spawn(mpi.Command{Path: self, Args: os.Args[1:], Procs: lost, Info: info}, 0)
	if err != nil {
		return nil, err
	}
	return join(fresh, false)
}

// join makes a team of those that were there, which come first, and spawned procs.
func join(inter *mpi.Comm, newcomer bool) (*mpi.Comm, error) {
	team, err := inter.Merge(newcomer)
	return team, errors.Join(err, inter.Disconnect())
}

// share gives all members the latest copy that one of them has.
func (s *state) share(team *mpi.Comm) error {
	latest, mine := []int64{0, 0}, []int64{s.step, int64(team.Rank())}
	if err := mpi.Allreduce(team, mine[:1], latest[:1], mpi.Max); err != nil {
		return err
	}
	if s.step < latest[0] {
		mine[1] = int64(team.Size())
	}
	if err := mpi.Allreduce(team, mine[1:], latest[1:], mpi.Min); err != nil {
		return err
	}
	rod := append([]float64(nil), s.rod...) // a Bcast that fails may leave it half written
	if err := mpi.Bcast(team, rod, int(latest[1])); err != nil {
		return err
	}
	s.step, s.rod = latest[0], rod
	if s.spawned && s.since == 0 {
		s.since = s.step
	}
	return nil
}

func part(team *mpi.Comm, rank int) (first, end int) {
	return rank * cells / team.Size(), (rank + 1) * cells / team.Size()
}

func (s *state) compute(team *mpi.Comm) error {
	me := team.Rank()
	first, end := part(team, me)
	counts, displs := make([]int, team.Size()), make([]int, team.Size())
	for r := range counts {
		f, e := part(team, r)
		counts[r], displs[r] = e-f, f
	}
	old, now := append([]float64(nil), s.rod...), append([]float64(nil), s.rod...)
	for step := s.step; step < steps; step++ {
		if step == *doomed && lost() || step == again && s.lostAgain() {
			os.Exit(3)
		}
		for i := max(first, 1); i < min(end, cells-1); i++ {
			now[i] = old[i] + 0.25*(old[i-1]-2*old[i]+old[i+1])
		}
		old, now = now, old
		if err := halos(team, old, first, end); err != nil {
			return err
		}
		if (step+1)%every > 0 {
			continue
		}
		rod := make([]float64, cells)
		if err := mpi.Allgatherv(team, old[first:end], rod, counts, displs); err != nil {
			return err
		}
		s.step, s.rod = step+1, rod
	}
	return nil
}

func halos(team *mpi.Comm, rod []float64, first, end int) error {
	left, right := team.Rank()-1, team.Rank()+1
	if left < 0 {
		left = mpi.ProcNull
	}
	if right == team.Size() {
		right = mpi.ProcNull
	}
	if _, err := mpi.Sendrecv(team, rod[end-1:end], right, 0, rod[max(first-1, 0):max(first-1, 0)+1], left, 0); err != nil {
		return err
	}
	_, err := mpi.Sendrecv(team, rod[first:first+1], left, 0, rod[min(end, cells-1):min(end, cells-1)+1], right, 0)
	return err
}

func begin() []float64 {
	rod := make([]float64, cells)
	for i := cells / 3; i < cells/2; i++ {
		rod[i] = 1 + float64(i%7)
	}
	return rod
}

func lost() bool {
	if mpi.Parent() != nil {
		return false
	}
	color, _, err := mpi.World().Attr(mpi.ClientColor)
	sites, _, wrong := mpi.World().Attr(mpi.ClientSize)
	n, ok := sites.(int)
	return errors.Join(err, wrong) == nil && ok && n > 1 && color == n-1
}

// lostAgain reports whether this proc is the one of those that were spawned first which is lost.
func (s *state) lostAgain() bool {
	return *twice && s.spawned && s.since < *doomed && mpi.World().Rank() == 0
}

func (s *state) report(team *mpi.Comm) error {
	alone := state{rod: begin()}
	if err := alone.compute(mpi.Self()); err != nil {
		return err
	}
	for i, x := range alone.rod {
		if s.rod[i] != x {
			return fmt.Errorf("%w: cell %d has %v, alone it has %v", errResult, i, s.rod[i], x)
		}
	}
	if team.Rank() == 0 {
		fmt.Printf("survivor: %d steps on %d cells, the last ones by %d procs, as it must be\n", steps, cells, team.Size())
	}
	return mpi.Finalize()
}
