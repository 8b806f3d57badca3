// Command heat2d simulates the flow of heat in a picture: two-dimensional diffusion on a
// Cartesian grid of MPI ranks.
//
// Rank 0 reads the initial field from a PNG and scatters it. In each step the ranks
// exchange the edges of their parts with up to four neighbours, by persistent requests, and
// meanwhile compute the cells that need no neighbour. From time to time an Allreduce finds
// the largest change, which decides when to stop. At the end rank 0 gathers the field and
// draws it.
//
// The result is the same for any number of ranks, to the last bit.
package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/openimpi/impi/core/mpi"
)

//go:generate go run ./testdata/scene -out board.png

// board is the initial field where no other is asked for.
//
//go:embed board.png
var board []byte

// options are those of the command line. Every rank has the same.
type options struct {
	image  string // "": board
	out    string
	frames int
	scale  int
	verify bool
	rules
}

func main() {
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	if err == nil {
		err = run(o)
	}
	if err != nil {
		mpi.Abort(1, "heat2d: "+err.Error())
	}
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("heat2d", flag.ContinueOnError)
	f.StringVar(&o.image, "image", "", "the initial field, a PNG `file`: white is held hot, black is held cold (default: a circuit board)")
	f.StringVar(&o.out, "out", "out", "the `folder` for the pictures")
	f.IntVar(&o.steps, "steps", 5000, "how many steps to compute, at most")
	f.IntVar(&o.check, "check", 100, "look at the largest change every so many `steps`")
	f.Float64Var(&o.tolerance, "tolerance", 1e-7, "stop when no cell changes by more in a step")
	f.IntVar(&o.frames, "frames", 0, "how many pictures to draw on the way")
	f.IntVar(&o.scale, "scale", 2, "pixels per cell and side")
	f.BoolVar(&o.verify, "verify", false, "compute the field in one process too, and compare all bits")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch {
	case f.NArg() > 0:
		err = fmt.Errorf("%q: all arguments are flags", f.Arg(0))
	case o.steps < 0 || o.check < 1 || o.frames < 0:
		err = errors.New("-steps and -frames are not negative, -check is positive")
	case o.scale < 1 || o.scale > 16:
		err = fmt.Errorf("-scale %d: 1 to 16", o.scale)
	}
	return o, err
}

func run(o options) error {
	if err := mpi.Init(); err != nil {
		return err
	}
	s, initial, err := distribute(o)
	if err != nil {
		return err
	}
	w := newReporter(s, o)
	if err := w.begin(initial); err != nil {
		return err
	}
	steps, change, err := solve(s.block, s, o.rules, w)
	if err != nil {
		return err
	}
	result, err := s.gather(s.block)
	if err != nil {
		return err
	}
	if err := w.end(initial, result, steps, change); err != nil {
		return err
	}
	return mpi.Finalize()
}
