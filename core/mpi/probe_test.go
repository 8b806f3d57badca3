package mpi

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/openimpi/impi/internal/engine/proc"
)

func TestProbeTellsTheSize(t *testing.T) {
	layout{procs: 2, dataLen: 100}.run(t, func(t *testing.T, c *Comm) error {
		for _, n := range []int{0, 3, 100, 101, 5000} {
			if c.Rank() == 0 {
				if err := Send(c, make([]int32, n), 1, n); err != nil {
					return err
				}
				continue
			}
			st, err := Probe(c, AnySource, AnyTag)
			if err != nil {
				return err
			}
			count, whole := Count[int32](st)
			if err := first(expect("count", count, n), expect("whole", whole, true), expect("tag", st.Tag, n), expect("source", st.Source, 0)); err != nil {
				return err
			}
			if _, err := Recv(c, make([]int32, count), st.Source, st.Tag); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestIprobeOfNothing(t *testing.T) {
	layout{procs: 2}.run(t, func(t *testing.T, c *Comm) error {
		found, _, err := Iprobe(c, AnySource, 17)
		return first(err, expect("found", found, false))
	})
}

func TestMatchedProbeReservesTheMessage(t *testing.T) {
	layout{procs: 2, dataLen: 50}.run(t, func(t *testing.T, c *Comm) error {
		if c.Rank() == 0 {
			long, err := Isend(c, pattern(200, 1), 1, 1)
			if err := first(err, Send(c, pattern(5, 2), 1, 1)); err != nil {
				return err
			}
			_, err = long.Wait()
			return err
		}
		m, st, err := Mprobe(c, 0, 1)
		if err := first(err, expect("bytes", st.Bytes(), 200)); err != nil {
			return err
		}
		// A receive that would match the first message gets the second.
		small, big := make([]byte, 5), make([]byte, 200)
		if _, err := Recv(c, small, 0, 1); err != nil {
			return err
		}
		if _, err := Mrecv(m, big); err != nil {
			return err
		}
		if !bytes.Equal(small, pattern(5, 2)) || !bytes.Equal(big, pattern(200, 1)) {
			return errors.New("the messages were mixed up")
		}
		if _, err := Mrecv(m, big); !errors.Is(err, ErrMessage) {
			return fmt.Errorf("received twice: %w", err)
		}
		m, _, err = Improbe(c, 0, 1)
		return first(err, expect("another", m == nil, true))
	})
}

// TestIprobeOffersTheCore: a program that probes in a loop does not keep the core from the proc
// whose message it wants.
func TestIprobeOffersTheCore(t *testing.T) {
	var offers atomic.Int32
	before := proc.YieldCore
	proc.YieldCore = func() {
		offers.Add(1)
		before()
	}
	defer func() { proc.YieldCore = before }()
	const probes = 160
	layout{procs: 1}.run(t, func(t *testing.T, c *Comm) error {
		for range probes {
			if found, _, err := Iprobe(c, AnySource, 17); found || err != nil {
				return fmt.Errorf("found %v: %w", found, err)
			}
		}
		return nil
	})
	if n := offers.Load(); n < probes/20 || n > probes/10 {
		t.Errorf("in %d probes the core was offered %d times", probes, n)
	}
}
