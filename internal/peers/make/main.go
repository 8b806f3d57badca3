// Command make fetches and builds the peers that tests and benchmarks run with, if
// they are not there: LAM/MPI 7.1.4, the sources of C programs, MPICH 4.0.2, and Nomad.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/openimpi/impi/internal/peers"
)

const help = `Fetches and builds LAM/MPI 7.1.4, the other MPI that the tests run with; fetches the
HPC Challenge, NetPIPE, p4est, HDF5, FFTW, hypre, PnetCDF, SUNDIALS and MPICH's test programs, which
they compile with our library; builds an MPICH 4.0.2 that can open ports and spawn, for impi-bench; and Nomad's agent, for
the one test of it.

usage: go run ./internal/peers/make [-there|-tests]

It goes into $` + peers.DirVariable + `, by default /var/cache/impi/peers for root and
impi/peers in the user's cache else. An interrupted build goes on where it was.
Nothing is done if it is there. To remove it, remove the folder.

-there builds nothing and only says by the exit status whether what the tests need is
there.
-tests leaves out what tests do not need, or one alone: the MPICH and Nomad, which take long, and
mpi4py, which is fetched without it and may be missing.

exit status: 0; 1 if it cannot be had, or is not there, with the reason; 2 for wrong usage
`

func main() {
	word := ""
	if len(os.Args) > 1 {
		word = os.Args[1]
	}
	switch {
	case len(os.Args) > 2, word != "" && word != "-there" && word != "-tests":
		fmt.Fprint(os.Stderr, help)
		os.Exit(2)
	case word == "-there":
		end(there())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	_, err := peers.Build(ctx, os.Stdout)
	err = errors.Join(err, peers.FetchPrograms(ctx, os.Stdout))
	if word != "-tests" {
		peers.FetchOptional(ctx, os.Stdout)
		_, e := peers.BuildMPICH(ctx, os.Stdout)
		err = errors.Join(err, e, peers.BuildNomad(ctx, os.Stdout))
	}
	stop()
	end(err)
}

// there reports what the tests need and the machine lacks.
func there() error {
	_, err := peers.Find()
	for _, p := range peers.Programs {
		_, e := p.Find()
		err = errors.Join(err, e)
	}
	return err
}

func end(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
