package lifetime

import (
	"context"
	"testing"
	"testing/synctest"
)

// TestCloseWaitsAndLetsNoneBegin: what runs is waited for, and what comes later does not run.
func TestCloseWaitsAndLetsNoneBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		g := NewGroup(ctx)
		ended := false
		if !g.Go(func() { <-g.Done(); synctest.Wait(); ended = !g.Go(func() { t.Error("it runs") }) }) {
			t.Fatal("it does not begin")
		}
		closed := make(chan struct{})
		go func() { g.Close(); close(closed) }()
		synctest.Wait()
		select {
		case <-closed:
			t.Fatal("it does not wait")
		default:
		}
		cancel()
		<-closed
		if !ended || !g.Closed() || g.Go(func() { t.Error("it runs") }) {
			t.Error("a task begins after Close")
		}
	})
}

// TestDrainWaitsForWhatBeginsMeanwhile: tasks that begin while others are waited for run and are
// waited for. None begins after that.
func TestDrainWaitsForWhatBeginsMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGroup(t.Context())
		first, second, ended := make(chan struct{}), make(chan struct{}), false
		g.Go(func() { <-first })
		drained := make(chan struct{})
		go func() { g.Drain(); close(drained) }()
		synctest.Wait()
		if !g.Go(func() { <-second; ended = true }) {
			t.Fatal("a task does not begin before the group is drained")
		}
		close(first)
		synctest.Wait()
		close(second)
		<-drained
		if !ended || g.Go(func() { t.Error("it runs") }) {
			t.Error("the second task is not waited for, or one begins afterwards")
		}
	})
}
