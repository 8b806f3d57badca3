package mpi

import (
	"fmt"
	"sync"
	"testing"
)

// Several goroutines of each rank exchange at the same time, each with its own
// tag: whoever drives must serve all, and give way.
func TestManyGoroutines(t *testing.T) {
	const threads, rounds = 8, 300
	layout{procs: 2, dataLen: 1000}.run(t, func(t *testing.T, c *Comm) error {
		var wg sync.WaitGroup
		errs := make(chan error, threads)
		for i := range threads {
			wg.Add(1)
			go func() {
				defer wg.Done()
				errs <- pingPong(c, i, rounds, 1+i*700)
			}()
		}
		wg.Wait()
		for range threads {
			if err := <-errs; err != nil {
				return err
			}
		}
		return nil
	})
}

func pingPong(c *Comm, tag, rounds, n int) error {
	other := 1 - c.Rank()
	buf := make([]byte, n)
	for i := range rounds {
		out := pattern(n, i)
		if c.Rank() == 0 {
			if err := Send(c, out, other, tag); err != nil {
				return err
			}
		}
		if _, err := Recv(c, buf, other, tag); err != nil {
			return err
		}
		if buf[n-1] != out[n-1] || buf[0] != out[0] {
			return fmt.Errorf("tag %d, round %d: damaged", tag, i)
		}
		if c.Rank() == 1 {
			if err := Send(c, buf, other, tag); err != nil {
				return err
			}
		}
	}
	return nil
}

// A goroutine that sleeps in a receive must not keep another from sending, nor
// need it to be woken.
func TestSendWhileAnotherWaits(t *testing.T) {
	for _, spin := range []string{"auto", "0"} {
		layout{procs: 2, spin: spin}.run(t, func(t *testing.T, c *Comm) error {
			other := 1 - c.Rank()
			got := make(chan error)
			go func() {
				_, err := Recv(c, []byte{0}, other, 1)
				got <- err
			}()
			for range 100 {
				if err := pingPong(c, 2, 1, 10); err != nil {
					return err
				}
			}
			if err := Send(c, []byte{1}, other, 1); err != nil {
				return err
			}
			return <-got
		})
	}
}

func TestSendsAndReceivesInManyGoroutines(t *testing.T) {
	layout{procs: 2, dataLen: 64}.run(t, func(t *testing.T, c *Comm) error {
		var wg sync.WaitGroup
		errs := make(chan error, 8)
		for i := range 4 {
			wg.Add(2)
			go func() {
				defer wg.Done()
				errs <- Send(c, pattern(500, i), 1-c.Rank(), i)
			}()
			go func() {
				defer wg.Done()
				_, err := Recv(c, make([]byte, 500), 1-c.Rank(), i)
				errs <- err
			}()
		}
		wg.Wait()
		for range 8 {
			if err := <-errs; err != nil {
				return err
			}
		}
		return nil
	})
}
