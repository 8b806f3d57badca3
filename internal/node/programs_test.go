package node

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/wireup"
)

// programs are what the procs of the tests run, by mode.
// gateVariable names a FIFO that the program early waits at; empty: none.
const gateVariable = "IMPI_TEST_GATE"

var programs = map[string]func(){
	"ring": func() { w := initialize(); ring(w); finalize() },
	"named": func() { // all look up a name that rank 0 publishes
		w := initialize()
		own := mpi.NewInfo()
		check(own.Set("scope", "job"))
		if w.Rank() == 0 {
			check(mpi.PublishName("sum", own, "a port"))
		}
		check(mpi.Barrier(w))
		if port, err := mpi.LookupName("sum", own); err != nil || port != "a port" {
			check(fmt.Errorf("%q, %w", port, err))
		}
		check(mpi.Barrier(w))
		if w.Rank() == 0 {
			check(mpi.UnpublishName("sum", own, "a port"))
		}
		finalize()
	},
	"all": func() { // everybody sends to everybody at once
		w := initialize()
		everybody(w)
		finalize()
	},
	"appnum": func() {
		w := initialize()
		n, ok, err := w.Attr(mpi.AppNum)
		fmt.Println("appnum", n, ok, err)
		finalize()
	},
	"forms": func() { // splits the world across its sites, and adds up
		w := initialize()
		c, err := w.Split(w.Rank()%2, -w.Rank())
		check(err)
		for _, c := range []*mpi.Comm{w, c} {
			sum := make([]float64, 3000)
			for i := range sum {
				sum[i] = float64(i)
			}
			check(mpi.Allreduce(c, nil, sum, mpi.Sum))
			for i, x := range sum {
				if x != float64(i*c.Size()) {
					panic(fmt.Sprintf("%v of %d at %d", x, c.Size(), i))
				}
			}
		}
		finalize()
	},
	"idle":  hang,
	"fate":  fate,
	"block": func() { initialize(); fmt.Println("blocked"); hang() },
	"linked": func() { // computes for ever, once everybody has talked to everybody
		w := initialize()
		everybody(w)
		hang()
	},
	"chatter": func() { // sends to and fro for ever
		w := initialize()
		everybody(w)
		for {
			_, err := mpi.Sendrecv(w, make([]int64, 100), 1-w.Rank(), 0, make([]int64, 100), 1-w.Rank(), 0)
			check(err)
		}
	},
	"traced": func() { // short messages to and fro, some that come late, and a long one
		w := initialize()
		var x [1]int64
		for late := range lates {
			for range lateRounds {
				if w.Rank() == 0 {
					check(mpi.Send(w, x[:], 1, 4))
				}
				_, err := mpi.Recv(w, x[:], 1-w.Rank(), 4)
				check(err)
				if w.Rank() == 1 {
					check(mpi.Send(w, x[:], 0, 4))
				}
			}
			if w.Rank() == 0 {
				<-time.After(computes)
				check(mpi.Send(w, x[:], 1, lateTag+late))
				<-time.After(computes / 10) // so that it is an entry of its own
			} else {
				_, err := mpi.Recv(w, x[:], 0, lateTag+late)
				check(err)
			}
		}
		long := make([]int64, 1<<20) // which cannot leave before it is received
		if w.Rank() == 0 {
			check(mpi.Send(w, long, 1, 5))
		} else {
			_, err := mpi.Recv(w, long, 0, 5)
			check(err)
		}
		fmt.Println("traced")
		finalize()
	},
	"board": func() { // waits for rank 1 on the board of its host
		w := initialize()
		if err := mpi.Barrier(w); err != nil {
			panic(err)
		}
		fmt.Println("pid", os.Getpid())
		if w.Rank() == 1 {
			hang()
		}
		_ = mpi.Barrier(w)
		panic("the barrier was passed without rank 1")
	},
	"blocked": func() { // of four
		w := initialize()
		var x [1]int64
		switch w.Rank() {
		case 0:
			_, _ = mpi.Recv(w, x[:], 2, 5)
		case 1:
			_, _ = mpi.Recv(w, x[:], mpi.AnySource, 9)
		case 2:
			_ = mpi.Ssend(w, x[:], 0, 6)
		default:
			_ = mpi.Barrier(w)
		}
		panic("nobody has stopped it")
	},
	"any": func() { // of three: rank 0 waits for ranks 1 and 2, of which 1 sends only when 2 has
		w := initialize()
		for range 200 {
			switch w.Rank() {
			case 0:
				reqs := make([]mpi.Request, 2)
				for i := range reqs {
					var err error
					reqs[i], err = mpi.Irecv(w, make([]int64, 1), i+1, 0)
					check(err)
				}
				for i := 1; i >= 0; i-- {
					check(mpi.Send(w, []int64{0}, i+1, 0))
					if done, _, err := mpi.Waitany(reqs); err != nil || done != i {
						panic(fmt.Sprint(done, " is done, not ", i, ": ", err))
					}
				}
			default:
				_, err := mpi.Recv(w, make([]int64, 1), 0, 0)
				check(err)
				check(mpi.Send(w, []int64{1}, 0, 0))
			}
		}
		check(mpi.Finalize())
	},
	"busy": func() { // of two: each waits for the other one, and rank 1 computes beside, until it gets a signal
		w := initialize()
		var x [1]int64
		if w.Rank() == 1 {
			enough := make(chan os.Signal, 1)
			signal.Notify(enough, syscall.SIGUSR1)
			go func() {
				for n := 0; len(enough) == 0; n++ {
				}
			}()
		}
		_, _ = mpi.Recv(w, x[:], 1-w.Rank(), 3)
		panic("nobody has stopped it")
	},
	"three": func() {
		if initialize().Rank() == 1 {
			os.Exit(3)
		}
		hang()
	},
	"zero": func() {
		if initialize().Rank() == 1 {
			os.Exit(0)
		}
		hang()
	},
	"abort": func() {
		if initialize().Rank() == 2 {
			mpi.Abort(7, "the matrix is singular")
		}
		hang()
	},
	"late": func() { // fails when the job is over
		r := initialize().Rank()
		finalize()
		os.Exit(4 * (r % 2))
	},
	"early": func() {
		if os.Getenv("IMPI_SITE_PROC") == "1" {
			_, _ = os.ReadFile(os.Getenv(gateVariable)) // blocks until somebody opens it for writing
			os.Exit(5)
		}
		initialize()
		hang()
	},
	"deaf": func() { // hears neither its node nor SIGTERM
		signal.Ignore(syscall.SIGTERM)
		hello()
		hang()
	},
	"old": func() { // speaks another control protocol
		c, _, err := wireup.Inherited()
		check(err)
		check(c.Send(wireup.Message{Kind: wireup.KindHello, Version: 99, Library: "old 1.0"}))
		hang()
	},
	"mute": func() { // closes its control socket
		c := hello()
		check(c.Close())
		hang()
	},
	"echo": func() {
		w := initialize()
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			fmt.Println("read", in.Text())
		}
		ring(w)
		finalize()
	},
	// The first direct links are made when a line comes on standard input.
	"onword": func() {
		w := initialize()
		ring(w)
		if w.Rank() == 0 {
			fmt.Println("ready")
			_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		}
		ring(w) // for which the others wait
		everybody(w)
		finalize()
	},
	"abortonword": func() { // one of them, while the others wait
		w := initialize()
		ring(w)
		if w.Rank() == 0 {
			fmt.Println("ready")
			_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		}
		ring(w)
		if w.Rank() == doomed {
			mpi.Abort(7, "on purpose")
		}
		hang()
	},
}

func initialize() *mpi.Comm {
	check(mpi.Init())
	w := mpi.World()
	fmt.Println("pid", os.Getpid())
	fmt.Println("rank", w.Rank(), "of", w.Size())
	return w
}

func finalize() { check(mpi.Finalize()) }

// hang waits for a signal that nobody sends.
func hang() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR1)
	<-c
}

// hello joins the job and hears nothing more.
func hello() *wireup.Conn {
	c, _, err := wireup.Inherited()
	check(err)
	check(c.Send(wireup.Message{Kind: wireup.KindHello, Version: wireup.Version, Library: "test"}))
	_, fds, err := c.Recv()
	check(err)
	wireup.CloseAll(fds[1:]) // the link to the agent stays open
	fmt.Println("pid", os.Getpid())
	return c
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(9)
	}
}

// ring sends a token around, once short and once long.
func ring(w *mpi.Comm) {
	me, n := w.Rank(), w.Size()
	if n == 1 {
		return
	}
	for _, size := range []int{1, 100000} {
		token := make([]int64, size)
		if me == 0 {
			token[size-1] = 1
			check(mpi.Send(w, token, 1%n, 0))
		}
		_, err := mpi.Recv(w, token, (me+n-1)%n, 0)
		check(err)
		if me != 0 {
			token[size-1]++
			check(mpi.Send(w, token, (me+1)%n, 0))
		} else {
			fmt.Println("token", token[size-1])
		}
	}
}

// everybody sends a number to everybody else at the same time and adds up.
func everybody(w *mpi.Comm) {
	me, n := w.Rank(), w.Size()
	var requests []mpi.Request
	for to := range n {
		if to != me {
			r, err := mpi.Isend(w, []int64{int64(me)}, to, 1)
			check(err)
			requests = append(requests, r)
		}
	}
	sum := int64(me)
	for from := range n {
		if from != me {
			var x [1]int64
			_, err := mpi.Recv(w, x[:], from, 1)
			check(err)
			sum += x[0]
		}
	}
	for _, r := range requests {
		_, err := r.Wait()
		check(err)
	}
	fmt.Println("sum", sum)
}
