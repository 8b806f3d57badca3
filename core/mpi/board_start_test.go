package mpi

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/core/board"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/proc"
)

// boardStarted is a nonblocking operation of a test, and how to check its result.
type boardStarted struct {
	q     Request
	err   error
	check func() error
}

func starts(q Request, err error, got, want []int32) boardStarted {
	return boardStarted{q, err, func() error { return agrees(nil, got, want) }}
}

func sends(q Request, err error) boardStarted {
	return boardStarted{q, err, func() error { return nil }}
}

// boardStarts are the nonblocking operations that go by way of the board, with blocks of n
// elements.
var boardStarts = map[string]func(c *Comm, root, n int) boardStarted{
	"barrier": func(c *Comm, _, _ int) boardStarted { return sends(Ibarrier(c)) },
	"bcast": func(c *Comm, root, n int) boardStarted {
		b := make([]int32, n)
		if c.Rank() == root {
			b = boardNumbers(n, root)
		}
		q, err := Ibcast(c, b, root)
		return starts(q, err, b, boardNumbers(n, root))
	},
	"gather": func(c *Comm, root, n int) boardStarted {
		if c.Rank() != root {
			return sends(Igather(c, boardNumbers(n, c.Rank()), nil, root))
		}
		all := make([]int32, n*c.Size())
		q, err := Igather(c, boardNumbers(n, c.Rank()), all, root)
		return starts(q, err, all, boardBlocks(c, n))
	},
	"scatter": func(c *Comm, root, n int) boardStarted {
		var all []int32
		if c.Rank() == root {
			all = boardBlocks(c, n)
		}
		b := make([]int32, n)
		q, err := Iscatter(c, all, b, root)
		return starts(q, err, b, boardNumbers(n, c.Rank()))
	},
	"allgather": func(c *Comm, _, n int) boardStarted {
		all := make([]int32, n*c.Size())
		q, err := Iallgather(c, boardNumbers(n, c.Rank()), all)
		return starts(q, err, all, boardBlocks(c, n))
	},
	"allgather in place": func(c *Comm, _, n int) boardStarted {
		all := make([]int32, n*c.Size())
		copy(all[n*c.Rank():], boardNumbers(n, c.Rank()))
		q, err := Iallgather(c, nil, all)
		return starts(q, err, all, boardBlocks(c, n))
	},
	"alltoall": func(c *Comm, _, n int) boardStarted {
		send, recv, want := boardCrossing(c, n)
		q, err := Ialltoall(c, send, recv)
		return starts(q, err, recv, want)
	},
	"alltoall in place": func(c *Comm, _, n int) boardStarted {
		send, _, want := boardCrossing(c, n)
		q, err := Ialltoall(c, nil, send)
		return starts(q, err, send, want)
	},
	"reduce": func(c *Comm, root, n int) boardStarted {
		if c.Rank() != root {
			return sends(Ireduce(c, boardNumbers(n, c.Rank()), nil, Sum, root))
		}
		sum := make([]int32, n)
		q, err := Ireduce(c, boardNumbers(n, c.Rank()), sum, Sum, root)
		return starts(q, err, sum, boardSums(c, n))
	},
	"reduce in place": func(c *Comm, root, n int) boardStarted {
		if c.Rank() != root {
			return sends(Ireduce(c, boardNumbers(n, c.Rank()), nil, Sum, root))
		}
		sum := boardNumbers(n, root)
		q, err := Ireduce(c, nil, sum, Sum, root)
		return starts(q, err, sum, boardSums(c, n))
	},
	"allreduce": func(c *Comm, _, n int) boardStarted {
		sum := make([]int32, n)
		q, err := Iallreduce(c, boardNumbers(n, c.Rank()), sum, Sum)
		return starts(q, err, sum, boardSums(c, n))
	},
	"allreduce in place": func(c *Comm, _, n int) boardStarted {
		sum := boardNumbers(n, c.Rank())
		q, err := Iallreduce(c, nil, sum, Sum)
		return starts(q, err, sum, boardSums(c, n))
	},
	"allreduce by the program's function": func(c *Comm, _, n int) boardStarted {
		b := boardLines(n, c.Rank(), c.Rank()+1)
		q, err := Iallreduce(c, nil, b, joined)
		return starts(q, err, b, boardLines(n, 0, c.Size()))
	},
	"a type with gaps": func(c *Comm, root, n int) boardStarted {
		gaps, err := TypeResized(datatype.Basic(datatype.Int32), 0, 8)
		if err == nil {
			err = gaps.Commit()
		}
		if err != nil {
			return boardStarted{err: err}
		}
		b, want := make([]int32, 2*n), make([]int32, 2*n)
		for i, x := range boardNumbers(2*n, 5) {
			if c.Rank() == root || i%2 == 0 {
				want[i] = x
			}
		}
		if c.Rank() == root {
			copy(b, want)
		}
		q, err := c.Ibcast(Typed(b, n, gaps), root)
		return starts(q, err, b, want)
	},
}

// end takes the result of an operation that is complete.
func (b *boardStarted) end(err error) error {
	if err == nil {
		err = b.check()
	}
	return err
}

// completeSome completes some of the operations, in an order and by calls that each member chooses
// for itself, and returns the others.
func completeSome(open []boardStarted, random *rand.Rand) ([]boardStarted, error) {
	for range random.IntN(4) {
		if len(open) == 0 {
			break
		}
		i := random.IntN(len(open))
		b := &open[i]
		var err error
		switch random.IntN(4) {
		case 0:
			_, err = b.q.Wait()
		case 1:
			done := false
			for !done && err == nil {
				if done, _, err = b.q.Test(); !done {
					runtime.Gosched()
				}
			}
		case 2:
			err = Waitall([]Request{b.q}, nil)
		default:
			done, _, e := b.q.Test()
			if err = e; !done && err == nil {
				continue
			}
		}
		if err := b.end(err); err != nil {
			return open, err
		}
		open = slices.Delete(open, i, i+1)
	}
	return open, nil
}

// startAndWait runs a program of nonblocking and blocking operations and messages on several
// communicators, which all members draw alike by seed; when they complete what they have started
// each draws for itself.
func startAndWait(c *Comm, seed uint64) error {
	dup, err := c.Dup()
	if err != nil {
		return err
	}
	part, err := c.Split(c.Rank()/2%2, -c.Rank())
	if err != nil {
		return err
	}
	comms, names, blocking := []*Comm{c, dup, part}, slices.Sorted(maps.Keys(boardStarts)), slices.Sorted(maps.Keys(boardOps))
	all, own := rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, uint64(c.Rank()+1)))
	sizes := []int{1, 12, 13, 200, 1024, 1025, 1900, 2500, 9000}
	var open []boardStarted
	if err := Barrier(c); err != nil { // from now on c has a place on the board, and the others later
		return err
	}
	for step := range 250 {
		comm := comms[all.IntN(3)]
		root, n := all.IntN(1<<20)%comm.Size(), sizes[all.IntN(len(sizes))]
		what := names[all.IntN(len(names))]
		switch kind := all.IntN(20); {
		case kind == 0:
			what = blocking[all.IntN(len(blocking))]
			err = boardOps[what](comm, root, n)
		case kind == 1: // who waits for messages sees to operations, and the other way round
			what = "messages"
			next, previous := (comm.Rank()+1)%comm.Size(), (comm.Rank()+comm.Size()-1)%comm.Size()
			q, e := Isend(comm, boardNumbers(n, step), next, step)
			b := make([]int32, n)
			err = first(e, second(Recv(comm, b, previous, step)), second(q.Wait()))
			err = agrees(err, b, boardNumbers(n, step))
		default:
			open = append(open, boardStarts[what](comm, root, n))
			err = open[len(open)-1].err
		}
		if err == nil {
			open, err = completeSome(open, own)
		}
		if err != nil {
			return fmt.Errorf("seed %d, step %d, %s of %d from %d: %w", seed, step, what, n, root, err)
		}
	}
	if s := collective.BoardMember(c.in()); s == nil || s.Started == nil {
		return errors.New("the board was not used")
	}
	err = first(dup.Free(), part.Free()) // while operations are under way there
	for i := range open {
		err = first(err, open[i].end(second(open[i].q.Wait())))
	}
	return err
}

// Nonblocking operations give what they should whatever else goes on, and however procs wait.
func TestBoardStarts(t *testing.T) {
	onlyBoards(t)
	for _, spin := range []string{"", "0"} {
		for _, procs := range []int{2, 3, 5} {
			seed := rand.Uint64()
			layout{procs: procs, spin: spin}.run(t, func(_ *testing.T, c *Comm) error { return startAndWait(c, seed) })
		}
	}
}

// waitsFor reports whether an operation cannot end at one member before another has begun it.
func waitsFor(what string, root, member, other int) bool {
	switch what {
	case "bcast", "scatter", "a type with gaps":
		return member != root && other == root
	case "gather", "reduce", "reduce in place":
		return member == root
	default:
		return true
	}
}

// TestBoardStartsInAnyOrder starts operations and tests for them in any order, and checks after
// each step that nothing is complete too early, and after all that everything is.
func TestBoardStartsInAnyOrder(t *testing.T) {
	onlyBoards(t)
	procs := layout{procs: 3}.start(t)
	done := make(chan error)
	var comms [2][]*Comm
	for _, p := range procs {
		comms[0] = append(comms[0], (*Comm)(p.Comms.World))
	}
	comms[1] = make([]*Comm, 3)
	for r, c := range comms[0] {
		go func() {
			d, err := c.Dup()
			comms[1][r] = d
			done <- first(err, Barrier(c), Barrier(d))
		}()
	}
	if err := first(<-done, <-done, <-done); err != nil {
		t.Fatal(err)
	}
	names := slices.Sorted(maps.Keys(boardStarts))
	names = slices.DeleteFunc(names, func(s string) bool { return s == "allreduce by the program's function" })
	rapid.Check(t, func(t *rapid.T) {
		type operation struct {
			what          string
			comm, root, n int
		}
		program := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) operation {
			return operation{
				what: rapid.SampledFrom(names).Draw(t, "what"), comm: rapid.IntRange(0, 1).Draw(t, "communicator"),
				root: rapid.IntRange(0, 2).Draw(t, "root"), n: rapid.SampledFrom([]int{1, 13, 1500, 2048}).Draw(t, "elements"),
			}
		}), 1, 25).Draw(t, "program")
		var open [3]map[int]*boardStarted
		var at [3]int
		for r := range open {
			open[r] = map[int]*boardStarted{}
		}
		// step starts an operation of a member, or tests for one of those that it has started.
		step := func(r int, start bool, which int) {
			if start && at[r] < len(program) {
				x := &program[at[r]]
				b := boardStarts[x.what](comms[x.comm][r], x.root, x.n)
				if b.err != nil {
					t.Fatalf("rank %d starts %v: %v", r, x, b.err)
				}
				open[r][at[r]] = &b
				at[r]++
				return
			}
			if len(open[r]) == 0 {
				return
			}
			keys := slices.Sorted(maps.Keys(open[r]))
			i := keys[which%len(keys)]
			x, b := &program[i], open[r][i]
			over, _, err := b.q.Test()
			if err != nil {
				t.Fatalf("rank %d in %v: %v", r, x, err)
			}
			if !over {
				return
			}
			if err := b.check(); err != nil {
				t.Fatalf("rank %d in operation %d, %v: %v", r, i, x, err)
			}
			delete(open[r], i)
			for m := range 3 {
				if at[m] <= i && waitsFor(x.what, x.root, r, m) {
					t.Fatalf("rank %d has ended operation %d, %v, before rank %d began it", r, i, x, m)
				}
			}
		}
		for range rapid.IntRange(0, 150).Draw(t, "steps") {
			step(rapid.IntRange(0, 2).Draw(t, "rank"), rapid.Bool().Draw(t, "start"), rapid.IntRange(0, 30).Draw(t, "which"))
		}
		for r := range 3 {
			for at[r] < len(program) {
				step(r, true, 0)
			}
		}
		for range 3 * len(program) { // what waits for room needs the others to look
			for r := range 3 {
				for i := range 25 {
					step(r, false, i)
				}
			}
		}
		for r := range 3 {
			if n := len(open[r]); n > 0 {
				t.Fatalf("rank %d: %d operations do not end", r, n)
			}
		}
	})
}

// An operation whose data are there when it starts is complete at once, and so is the part of a
// member that gets nothing.
func TestBoardStartsAtOnce(t *testing.T) {
	onlyBoards(t)
	procs := onBoard(t, layout{procs: 2})
	a, b := (*Comm)(procs[0].Comms.World), (*Comm)(procs[1].Comms.World)
	for range 3 * board.Slots { // each place is used more than once
		for name, ends := range map[string]int{"bcast": 2, "gather": 1, "scatter": 2, "reduce": 1, "barrier": 1, "allreduce": 1, "alltoall": 1, "allgather": 1} {
			x := boardStarts[name](a, 0, 10)
			y := boardStarts[name](b, 0, 10)
			over := 0
			for _, z := range []*boardStarted{&y, &x} {
				if ok, _, err := z.q.in().Peek(); ok && err == nil {
					over++
				}
				if err := first(z.err, z.end(second(z.q.Wait()))); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			if over < ends {
				t.Errorf("%s: %d were complete at once, want %d", name, over, ends)
			}
		}
	}
}

// Whoever waits for an operation hears of a member that dies, asleep or not; and the next ones end
// too.
func TestBoardStartPeerDies(t *testing.T) {
	onlyBoards(t)
	for _, name := range []string{"barrier", "allgather", "alltoall", "allreduce", "bcast", "scatter"} {
		procs := onBoard(t, layout{procs: 3})
		done := make(chan error)
		for _, p := range procs[:2] {
			go func() {
				var open []boardStarted
				for range 20 { // more than there are entries
					open = append(open, boardStarts[name]((*Comm)(p.Comms.World), 2, 10))
				}
				var err error
				for i := range open {
					if e := second(open[i].q.Wait()); !errors.Is(e, message.ErrPeerDown) {
						err = fmt.Errorf("number %d: %w", i, e)
					}
				}
				done <- err
			}()
			sleeping(p, 1)
		}
		p := procs[2]
		p.Lock()
		p.Endpoints.Close()
		p.Unlock()
		for range 2 {
			if err := <-done; err != nil {
				t.Errorf("%s without the third: %v", name, err)
			}
		}
		if err := Barrier((*Comm)(procs[0].Comms.World)); !errors.Is(err, message.ErrPeerDown) {
			t.Errorf("after %s: %v", name, err)
		}
	}
}

// Several goroutines wait for operations of their own at a time, and one of them sees to all.
func TestBoardStartThreads(t *testing.T) {
	onlyBoards(t)
	for _, spin := range []string{"", "0"} {
		layout{procs: 3, spin: spin}.run(t, func(_ *testing.T, c *Comm) error {
			done := make(chan error)
			for range 4 {
				d, err := c.Dup()
				if err != nil {
					return err
				}
				go func() {
					err := Barrier(d)
					for i := 0; i < 50 && err == nil; i++ {
						b := boardStarts["allreduce"](d, 0, 100)
						x := boardStarts["bcast"](d, i%3, 100)
						err = first(b.err, x.err, x.end(second(x.q.Wait())), b.end(second(b.q.Wait())))
						if i%7 == 0 {
							err = first(err, Barrier(d))
						}
					}
					done <- err
				}()
			}
			return first(<-done, <-done, <-done, <-done)
		})
	}
}

// The end of the job ends operations, also those that nobody has waited for yet.
func TestBoardStartJobEnds(t *testing.T) {
	onlyBoards(t)
	procs := onBoard(t, layout{procs: 2})
	done := make(chan error)
	c := (*Comm)(procs[0].Comms.World)
	x, y := boardStarts["barrier"](c, 0, 0), boardStarts["allreduce"](c, 0, 9)
	go func() { done <- second(x.q.Wait()) }()
	sleeping(procs[0], 1)
	procs[0].Lock()
	procs[0].SetFailed(errors.New("for the test"))
	procs[0].Unlock()
	if err := <-done; !errors.Is(err, ErrJobOver) {
		t.Errorf("asleep: %v", err)
	}
	if err := second(y.q.Wait()); !errors.Is(err, ErrJobOver) {
		t.Errorf("afterwards: %v", err)
	}
}

// onBoard starts procs that have agreed on their places on the board.
func onBoard(t *testing.T, l layout) []*proc.Process {
	t.Helper()
	procs := l.start(t)
	done := make(chan error)
	for _, p := range procs {
		go func() { done <- Barrier((*Comm)(p.Comms.World)) }()
	}
	for range procs {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	return procs
}

// A goroutine that sleeps for something else is woken for an operation that another one starts, and
// tells it of its end.
func TestBoardStartBesideSleeper(t *testing.T) {
	onlyBoards(t)
	procs := onBoard(t, layout{procs: 2, spin: "0"})
	a, b := (*Comm)(procs[0].Comms.World), (*Comm)(procs[1].Comms.World)
	received, ended := make(chan error), make(chan error)
	go func() { received <- second(Recv(a, make([]byte, 1), 1, 0)) }()
	sleeping(procs[0], 1)
	go func() {
		x := boardStarts["allgather"](a, 0, 10)
		ended <- first(x.err, x.end(second(x.q.Wait())))
	}()
	sleeping(procs[0], 2)
	y := boardStarts["allgather"](b, 0, 10)
	err := first(y.err, y.end(second(y.q.Wait())), <-ended, Send(b, []byte{1}, 0, 0), <-received)
	if err != nil {
		t.Error(err)
	}
}

// A member that calls a blocking operation does not say that it has read what it still needs of
// those that it has started.
func TestBoardStartBeforeBlocking(t *testing.T) {
	onlyBoards(t)
	procs := onBoard(t, layout{procs: 2, spin: "0"})
	a, b := (*Comm)(procs[0].Comms.World), (*Comm)(procs[1].Comms.World)
	x := boardStarts["allgather"](a, 0, 10)
	next := board.FirstStep(collective.BoardMember(a.in()).Member.Number.Load())
	done := make(chan error)
	go func() { done <- Barrier(a) }()
	sleeping(procs[0], 1)
	if w := collective.BoardMember(b.in()).Member.Arrived(board.SetOf(0), next); w.Done() {
		t.Error("it says that it is in the next operation")
	}
	y := boardStarts["allgather"](b, 0, 10)
	err := first(x.err, y.err, Barrier(b), <-done, x.end(second(x.q.Wait())), y.end(second(y.q.Wait())))
	if err != nil {
		t.Error(err)
	}
}

// Who is about to sleep looks once more whether the others have posted what its operations need.
func TestBoardStartLooksAgain(t *testing.T) {
	onlyBoards(t)
	procs := onBoard(t, layout{procs: 2, spin: "0"})
	a, b := (*Comm)(procs[0].Comms.World), (*Comm)(procs[1].Comms.World)
	x := boardStarts["allgather"](a, 0, 10)
	var y boardStarted
	procs[0].Boards.Board.Interleave(func() {
		procs[0].Boards.Board.Interleave(nil)
		y = boardStarts["allgather"](b, 0, 10)
	})
	err := first(x.err, x.end(second(x.q.Wait())), y.err, y.end(second(y.q.Wait())))
	if err != nil {
		t.Error(err)
	}
}
