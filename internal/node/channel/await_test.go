package channel

import (
	"context"
	"testing"
	"testing/synctest"
)

// A channel that arrives before its host makes channels waits until it does: the other node
// was faster.
func TestChannelThatComesBeforeTheDance(t *testing.T) {
	for name, want := range map[string]bool{"the dance begins": true, "there is none": false, "it is given up": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &end{danced: make(chan struct{})}
				ready := make(chan struct{})
				d := &Channels{Settings: Settings{Ready: ready}}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				got := make(chan *dancer, 1)
				go func() { got <- d.awaitDance(ctx, h) }()
				synctest.Wait()
				if len(got) > 0 {
					t.Fatal("it does not wait")
				}
				begun := new(dancer)
				switch name {
				case "the dance begins":
					h.dancing.Store(begun)
					close(h.danced)
				case "there is none":
					close(ready)
				default:
					cancel()
				}
				if x := <-got; (x == begun) != want || x != nil && x != begun {
					t.Errorf("it gets %v", x)
				}
			})
		})
	}
}
