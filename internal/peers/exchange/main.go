// Command exchange does in Go what internal/peers/testdata/exchange.c does in C, call by
// call. Both run in one job, and exchange messages with each other.
//
// usage: exchange TEST [NUMBER...] [+ TEST [NUMBER...]]...
//
// Every rank runs the same tests. A rank that finds a fault reports it and aborts.
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/openimpi/impi/core/mpi"
)

// rank of this proc, how many there are, and the communicator of all.
var (
	world      *mpi.Comm
	rank, size int
)

type test struct {
	run   func(a []int)
	least int // least number of arguments
}

var tests = map[string]test{
	"ring": {ring, 1}, "pingpong": {pingpong, 4}, "ssend": {ssend, 4}, "lostack": {lostAck, 3}, "flood": {flood, 3}, "wild": {wild, 1},
	"pairs": {pairs, 2}, "barrier": {barrier, 1}, "bcast": {bcast, 3}, "reduce": {reduce, 1}, "allreduce": {allreduce, 1},
	"types": {types, 2}, "derived": {derived, 3}, "pump": {pump, 2}, "backlog": {backlog, 3}, "spawn": {spawn, 3},
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		mpi.Abort(1, "exchange: "+err.Error())
	}
}

func run(args []string) error {
	if err := mpi.Init(); err != nil {
		return err
	}
	if parent := mpi.Parent(); parent != nil {
		return newcomer(parent)
	}
	world = mpi.World()
	rank, size = world.Rank(), world.Size()
	for len(args) > 0 {
		one := args
		if i := slices.Index(args, "+"); i >= 0 {
			one, args = args[:i], args[i+1:]
		} else {
			args = nil
		}
		if err := runTest(one); err != nil {
			return err
		}
	}
	if err := mpi.Finalize(); err != nil {
		return err
	}
	fmt.Printf("exchange: rank %d: finalized\n", rank)
	return nil
}

func runTest(args []string) error {
	numbers := make([]int, 0, len(args))
	for _, s := range args[1:] {
		n, err := strconv.Atoi(s)
		if err != nil {
			return err
		}
		numbers = append(numbers, n)
	}
	t, known := tests[args[0]]
	if !known || len(numbers) < t.least {
		return fmt.Errorf("%s: no such test, or too few numbers (%d)", args[0], len(numbers))
	}
	if err := attempt(t.run, numbers); err != nil {
		return fmt.Errorf("%s: rank %d: %w", args[0], rank, err)
	}
	fmt.Printf("exchange: %s: rank %d of %d: ok\n", args[0], rank, size)
	return nil
}

var errContents = errors.New("wrong message")

type failure struct{ error }

func attempt(run func(a []int), numbers []int) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case failure:
			err = p.error
		default:
			panic(p)
		}
	}()
	run(numbers)
	return nil
}

// check fails the test if a call has failed; must does so for a call that returns a value.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func must[T any](x T, err error) T {
	check(err)
	return x
}

func fail(format string, args ...any) {
	check(fmt.Errorf("%w: "+format, append([]any{errContents}, args...)...))
}

func patternByte(i, seed int) byte { return byte(i*31 + i/251 + seed) }

func writePattern(b []byte, seed int) {
	for i := range b {
		b[i] = patternByte(i, seed)
	}
}

func checkPattern(b []byte, seed int) {
	for i, x := range b {
		if x != patternByte(i, seed) {
			fail("byte %d of %d is %d, want %d", i, len(b), x, patternByte(i, seed))
		}
	}
}

func receive(b []byte, n, seed, source, tag, from, with int) {
	st := must(mpi.Recv(world, b, source, tag))
	if st.Source != from || st.Tag != with || st.Bytes() != int64(n) {
		fail("%d bytes from %d with tag %d; want %d from %d with %d", st.Bytes(), st.Source, st.Tag, n, from, with)
	}
	checkPattern(b[:n], seed)
}
