// Command make fetches and builds the peers that tests run with, if they are not
// there: LAM/MPI 7.1.4.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/openimpi/impi/internal/peers"
)

const help = `Fetches and builds LAM/MPI 7.1.4, the other MPI that the tests run with.

usage: go run ./internal/peers/make

It goes into $` + peers.DirVariable + `, by default /var/cache/impi/peers for root and
impi/peers in the user's cache else. An interrupted build goes on where it was.
Nothing is done if it is there. To remove it, remove the folder.

exit status: 0; 1 if it cannot be had, with the reason
`

func main() {
	if len(os.Args) > 1 {
		fmt.Fprint(os.Stderr, help)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if _, err := peers.Build(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
