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
