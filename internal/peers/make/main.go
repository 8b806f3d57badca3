// Command make fetches and builds the peers that tests run with, if they are not
// there: LAM/MPI 7.1.4, and the source of the HPC Challenge.
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

const help = `Fetches and builds LAM/MPI 7.1.4, the other MPI that the tests run with, and fetches
the HPC Challenge, a C program that they compile with our library.

usage: go run ./internal/peers/make [-there]

It goes into $` + peers.DirVariable + `, by default /var/cache/impi/peers for root and
impi/peers in the user's cache else. An interrupted build goes on where it was.
Nothing is done if it is there. To remove it, remove the folder.

-there builds nothing and only says by the exit status whether LAM/MPI is there.

exit status: 0; 1 if it cannot be had, or is not there, with the reason
`

func main() {
	switch args := os.Args[1:]; {
	case len(args) == 1 && args[0] == "-there":
		_, err := peers.Find()
		end(err)
	case len(args) > 0:
		fmt.Fprint(os.Stderr, help)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	_, err := peers.Build(ctx, os.Stdout)
	err = errors.Join(err, peers.FetchHPCC(ctx, os.Stdout))
	stop()
	end(err)
}

// end ends the program.
func end(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
