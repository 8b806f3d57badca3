package mpi

import "testing"

// The fast path allocates nothing: not for short messages, not for long ones,
// not for what arrives before it is wanted.
func TestMessagesAllocateNothing(t *testing.T) {
	for name, n := range map[string]int{"short": 8, "staged": 4000, "packet": 60_000, "long": 200_000} {
		t.Run(name, func(t *testing.T) {
			l := layout{procs: 2}
			procs := l.start(t)
			stop := make(chan struct{})
			go func() {
				defer close(stop)
				buf := make([]byte, n)
				for {
					st, err := Recv((*Comm)(procs[1].Comms.World), buf, 0, AnyTag)
					if err != nil || st.Tag == 1 {
						return
					}
					if err := Send((*Comm)(procs[1].Comms.World), buf, 0, 0); err != nil {
						return
					}
				}
			}()
			c, buf := (*Comm)(procs[0].Comms.World), make([]byte, n)
			round := func() {
				_ = Send(c, buf, 1, 0)
				_, _ = Recv(c, buf, 1, 0)
			}
			for range 20 {
				round() // pools fill
			}
			if a := testing.AllocsPerRun(200, round); a > 0 {
				t.Errorf("%v allocations per exchange", a)
			}
			_ = Send(c, buf, 1, 1)
			<-stop
		})
	}
}

func TestNonBlockingAllocatesNothing(t *testing.T) {
	procs := layout{}.start(t)
	c, in, out := (*Comm)(procs[0].Comms.World), make([]byte, 100), make([]byte, 100)
	reqs := make([]Request, 2)
	round := func() {
		reqs[0], _ = Isend(c, out, 0, 3)
		reqs[1], _ = Irecv(c, in, 0, 3)
		_ = Waitall(reqs, nil)
	}
	for range 20 {
		round()
	}
	if a := testing.AllocsPerRun(100, round); a > 0 {
		t.Errorf("%v allocations per exchange", a)
	}
}

// What is started on the board, and what is waited for there, uses memory again.
func TestBoardStartsAllocateNothing(t *testing.T) {
	onlyBoards(t)
	procs := onBoard(t, layout{procs: 2})
	a, b := (*Comm)(procs[0].Comms.World), (*Comm)(procs[1].Comms.World)
	var bufs [4][4]float64
	both := func(x Request, e1 error, y Request, e2 error) {
		if err := first(e1, e2, second(x.Wait()), second(y.Wait())); err != nil {
			t.Error(err)
		}
	}
	round := func() {
		x, e1 := Ibarrier(a)
		y, e2 := Ibarrier(b)
		both(x, e1, y, e2)
		x, e1 = Ibcast(a, bufs[0][:], 0)
		y, e2 = Ibcast(b, bufs[1][:], 0)
		both(x, e1, y, e2)
		x, e1 = Iallreduce(a, bufs[0][:], bufs[2][:], Sum)
		y, e2 = Iallreduce(b, bufs[1][:], bufs[3][:], Sum)
		both(x, e1, y, e2)
	}
	for range 20 {
		round()
	}
	if n := testing.AllocsPerRun(100, round); n > 0 {
		t.Errorf("%v allocations per round", n)
	}
}

func TestFencesAllocateNothing(t *testing.T) {
	onlyBoards(t)
	const warm, rounds = 20, 200
	layout{procs: 2}.run(t, func(t *testing.T, c *Comm) error {
		w, err := c.WinAllocate(8, 1, nil)
		if err != nil {
			return err
		}
		fence := func() { err = first(err, w.Fence(0)) }
		for range warm {
			fence()
		}
		if c.Rank() == 1 {
			for range rounds + 1 { // AllocsPerRun calls it once more
				fence()
			}
		} else if n := testing.AllocsPerRun(rounds, fence); n > 0 {
			t.Errorf("%v allocations", n)
		}
		return first(err, w.Free())
	})
}
