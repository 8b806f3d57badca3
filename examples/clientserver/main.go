// Command clientserver splits an intercommunicator of servers and clients so that
// each client has one server, and each server has the clients that are its own.
package main

import (
	"errors"
	"flag"
	"fmt"

	"github.com/openimpi/impi/core/mpi"
)

var (
	errRanks  = errors.New("there must be more ranks than servers")
	errAnswer = errors.New("wrong answer")
)

func main() {
	servers := flag.Int("servers", 2, "how many of the ranks are servers")
	flag.Parse()
	if err := run(*servers); err != nil {
		mpi.Abort(1, "clientserver: "+err.Error())
	}
}

func run(servers int) error {
	if err := mpi.Init(); err != nil {
		return err
	}
	world := mpi.World()
	if servers < 1 || world.Size() <= servers {
		return fmt.Errorf("%w, there are %d and %d", errRanks, world.Size(), servers)
	}
	served, err := share(world, servers)
	if err != nil {
		return err
	}
	total := []int{0}
	if err := mpi.Reduce(world, []int{served}, total, mpi.Sum, 0); err != nil {
		return err
	}
	if world.Rank() == 0 {
		if total[0] != world.Size()-servers {
			return fmt.Errorf("%w: %d clients were served", errAnswer, total[0])
		}
		fmt.Printf("clientserver: %d servers have answered %d clients, each its own\n", servers, total[0])
	}
	return mpi.Finalize()
}

// share makes the intercommunicators and does this rank's part. It returns how many clients
// it has served.
func share(world *mpi.Comm, servers int) (served int, err error) {
	side, other := 0, servers
	if world.Rank() >= servers {
		side, other = 1, 0
	}
	own, err := world.Split(side, 0)
	if err != nil {
		return 0, err
	}
	all, err := own.IntercommCreate(0, world, other, 0)
	if err != nil {
		return 0, err
	}
	color := own.Rank() // a server's color is its rank, a client's the rank of its server
	if side == 1 {
		color %= servers
	}
	mine, err := all.Split(color, own.Rank())
	if err != nil {
		return 0, err
	}
	switch {
	case mine == nil: // a server without clients
	case side == 0:
		served, err = serve(mine, own.Rank())
	default:
		err = ask(mine, own.Rank(), own.Rank()%servers)
	}
	if err == nil && mine != nil {
		err = mine.Free()
	}
	return served, errors.Join(err, all.Free(), own.Free())
}

func answer(server, question int) int { return question*question + 1000*server }

func serve(clients *mpi.Comm, server int) (served int, err error) {
	n, err := clients.RemoteSize()
	if err != nil {
		return 0, err
	}
	for ; served < n; served++ {
		question := []int{0}
		st, err := mpi.Recv(clients, question, mpi.AnySource, 0)
		if err != nil {
			return served, err
		}
		if err := mpi.Send(clients, []int{answer(server, question[0])}, st.Source, 0); err != nil {
			return served, err
		}
	}
	return served, nil
}

// ask asks the client's own server, which is the only one that it can reach.
func ask(server *mpi.Comm, client, number int) error {
	n, err := server.RemoteSize()
	if err != nil {
		return err
	}
	got := []int{0}
	if _, err := mpi.Sendrecv(server, []int{client}, 0, 0, got, 0, 0); err != nil {
		return err
	}
	if want := answer(number, client); n != 1 || got[0] != want {
		return fmt.Errorf("%w: %d of one of %d servers, want %d", errAnswer, got[0], n, want)
	}
	return nil
}
