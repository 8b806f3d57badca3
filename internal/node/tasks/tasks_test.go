package tasks

import (
	"context"
	"testing"
	"testing/synctest"
)

// TestCloseWaitsAndLetsNoneBegin: what runs is waited for, and what comes later does not run.
func TestCloseWaitsAndLetsNoneBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		g := New(ctx)
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
