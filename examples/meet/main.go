// Command meet is two jobs that find each other by a published name: one counts primes for
// any job that asks, the other asks. They are started separately, with different job files,
// and have only a name server in common.
package main

import (
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/openimpi/impi/core/mpi"
)

const (
	service = "primes"
	tag     = 1
)

var (
	errNobody = errors.New("nobody serves")
	errAnswer = errors.New("wrong answer")
)

func main() {
	serves := flag.Int("serve", 0, "serve as many jobs, one after the other; 0: be one that asks")
	limit := flag.Int64("limit", 200_000, "count the primes below this number")
	patience := flag.Duration("patience", time.Minute, "how long to wait until somebody serves")
	flag.Parse()
	if err := run(*serves, *limit, *patience); err != nil {
		mpi.Abort(1, "meet: "+err.Error())
	}
}

func run(serves int, limit int64, patience time.Duration) error {
	if err := mpi.Init(); err != nil {
		return err
	}
	var err error
	if serves > 0 {
		err = serve(mpi.World(), serves)
	} else {
		err = ask(mpi.World(), limit, patience)
	}
	if err != nil {
		return err
	}
	return mpi.Finalize()
}

// serve opens a port, publishes it, and accepts one job after the other. Only rank 0 needs
// the port's name.
func serve(world *mpi.Comm, jobs int) (err error) {
	port := ""
	if world.Rank() == 0 {
		if port, err = mpi.OpenPort(nil); err != nil {
			return err
		}
		if err := mpi.PublishName(service, nil, port); err != nil {
			return err
		}
		fmt.Println("meet: serving")
	}
	for range jobs {
		clients, err := world.Accept(port, nil, 0)
		if err != nil {
			return err
		}
		if err := answer(clients); err != nil {
			return err
		}
		if err := clients.Disconnect(); err != nil {
			return err
		}
	}
	if world.Rank() > 0 {
		return nil
	}
	fmt.Printf("meet: served %d jobs\n", jobs)
	return errors.Join(mpi.UnpublishName(service, nil, port), mpi.ClosePort(port))
}

func answer(clients *mpi.Comm) error {
	n, err := clients.RemoteSize()
	if err != nil {
		return err
	}
	for range n {
		var span [2]int64
		st, err := mpi.Recv(clients, span[:], mpi.AnySource, tag)
		if err != nil {
			return err
		}
		if err := mpi.Send(clients, []int64{primes(span[0], span[1])}, st.Source, tag); err != nil {
			return err
		}
	}
	return nil
}

func primes(low, high int64) (count int64) {
	for n := max(low, 2); n < high; n++ {
		prime := true
		for d := int64(2); d*d <= n && prime; d++ {
			prime = n%d != 0
		}
		if prime {
			count++
		}
	}
	return count
}

// ask makes each proc of this job ask each proc of the server job for a part, adds up the
// answers, and counts the primes again as a check.
func ask(world *mpi.Comm, limit int64, patience time.Duration) (err error) {
	port := ""
	if world.Rank() == 0 {
		if port, err = lookUp(patience); err != nil {
			return err
		}
	}
	servers, err := world.Connect(port, nil, 0)
	if err != nil {
		return err
	}
	n, err := servers.RemoteSize()
	if err != nil {
		return err
	}
	parts := int64(n * world.Size())
	var found [1]int64
	for s := range n {
		part := int64(world.Rank()*n + s)
		if err := mpi.Send(servers, []int64{limit * part / parts, limit * (part + 1) / parts}, s, tag); err != nil {
			return err
		}
	}
	for s := range n {
		var count [1]int64
		if _, err := mpi.Recv(servers, count[:], s, tag); err != nil {
			return err
		}
		found[0] += count[0]
	}
	if err := servers.Disconnect(); err != nil {
		return err
	}
	total := []int64{0}
	if err := mpi.Reduce(world, found[:], total, mpi.Sum, 0); err != nil {
		return err
	}
	if world.Rank() > 0 {
		return nil
	}
	if own := primes(0, limit); total[0] != own {
		return fmt.Errorf("%w: %d primes below %d, there are %d", errAnswer, total[0], limit, own)
	}
	fmt.Printf("meet: %d primes below %d, counted by %d ranks of another job for %d of this one\n", total[0], limit, n, world.Size())
	return nil
}

func lookUp(patience time.Duration) (port string, err error) {
	for began := time.Now(); time.Since(began) < patience; time.Sleep(50 * time.Millisecond) {
		if port, err = mpi.LookupName(service, nil); !errors.Is(err, mpi.ErrName) {
			return port, err
		}
	}
	return "", fmt.Errorf("%w: %q was not published for %v", errNobody, service, patience)
}
