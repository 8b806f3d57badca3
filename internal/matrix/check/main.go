// Command matrix-check is a program for the matrix: all collectives, or messages
// of 64 MiB, each with its result checked. With -until it goes on until a file is
// there, so that something can be broken meanwhile.
package main

import (
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"os"

	"github.com/openimpi/impi/core/mpi"
)

func main() {
	what := flag.String("what", "collectives", "collectives or large")
	until := flag.String("until", "", "go on until this file exists")
	mark := flag.String("mark", "", "print this once the first round is done")
	flag.Parse()
	if err := run(*what, *until, *mark); err != nil {
		fmt.Fprintln(os.Stderr, "matrix-check:", err)
		mpi.Abort(1, err.Error())
	}
}

func run(what, until, mark string) error {
	if err := mpi.Init(); err != nil {
		return err
	}
	round, ok := map[string]func(*mpi.Comm, int) error{"collectives": collectives, "large": large}[what]
	if !ok {
		return fmt.Errorf("-what %q: collectives or large", what)
	}
	w := mpi.World()
	for n := 0; ; n++ {
		if err := round(w, n); err != nil {
			return fmt.Errorf("round %d: %w", n, err)
		}
		if n == 0 && w.Rank() == 0 && mark != "" {
			fmt.Fprintln(os.Stdout, mark)
		}
		more, err := goOn(w, until)
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	if w.Rank() == 0 { // the other ranks have ended the job if their results were wrong
		fmt.Fprintf(os.Stdout, "matrix-check: every result of %s was right\n", what)
	}
	return mpi.Finalize()
}

// goOn tells all ranks whether the file is still missing. Two more rounds follow once it is
// there, since the fault may be noticed only by the next message.
func goOn(w *mpi.Comm, until string) (bool, error) {
	missing := []int32{0}
	if w.Rank() == 0 && until != "" && !after {
		missing[0] = 1
		if _, err := os.Stat(until); err == nil {
			after = true
		}
	}
	err := mpi.Bcast(w, missing, 0)
	return missing[0] != 0, err
}

var after bool

// large passes 64 MiB around the ranks.
func large(w *mpi.Comm, n int) error {
	me, size := w.Rank(), w.Size()
	out, in := make([]byte, 64<<20), make([]byte, 64<<20)
	fill(out, me, n)
	if _, err := mpi.Sendrecv(w, out, (me+1)%size, 7, in, (me+size-1)%size, 7); err != nil {
		return err
	}
	fill(out, (me+size-1)%size, n)
	if crc32.ChecksumIEEE(in) != crc32.ChecksumIEEE(out) {
		return errors.New("64 MiB have changed on the way")
	}
	return nil
}

func fill(b []byte, rank, n int) {
	for i := range b {
		b[i] = byte(i>>12) ^ byte(i) ^ byte(rank*31+n)
	}
}
