package metrics

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/openimpi/impi/internal/links"
)

// TestRemoveWaitsForAScrape: what is removed while it is scraped is asked no more when remove has
// returned, by this scrape or another one that has begun before.
func TestRemoveWaitsForAScrape(t *testing.T) {
	m, err := Serve(Settings{
		Listen: netip.MustParseAddrPort("127.0.0.1:0"), Job: "heat", Site: "alpha", Log: hclog.NewNullLogger(),
		Describe: func(context.Context) *links.Node { return sample() }, State: func() links.NodeState { return links.NodeRunning },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	for range 20 {
		node := sample() // is not guarded: nobody may read it when remove has returned
		entered, proceed := make(chan struct{}, 1), make(chan struct{})
		c := newCollector(Settings{Job: "heat/spawn1", Site: "alpha", Describe: func(context.Context) *links.Node {
			select {
			case entered <- struct{}{}:
			default:
			}
			<-proceed
			return &links.Node{NodeInfo: node.NodeInfo, State: node.State, Procs: node.Procs}
		}})
		remove, err := m.add(c)
		if err != nil {
			t.Fatal(err)
		}
		scraped := make(chan error, 1)
		go func() {
			_, err := m.registry.Gather()
			scraped <- err
		}()
		<-entered
		removed := make(chan struct{})
		go func() {
			remove()
			node.Procs = nil
			close(removed)
		}()
		for c.scraped.TryRLock() { // until remove waits
			c.scraped.RUnlock()
			select {
			case <-removed:
				t.Fatal("it is removed while a scrape asks it")
			default:
				runtime.Gosched()
			}
		}
		close(proceed)
		<-removed
		if err := <-scraped; err != nil {
			t.Error(err)
		}
		late := make(chan prometheus.Metric, 1000)
		if c.Collect(late); len(late) > 0 {
			t.Errorf("%d metrics of what is removed", len(late))
		}
	}
}

// TestRemoveInterruptsAScrape: the end of a world does not wait for procs that a scrape has asked and
// that do not answer, and what is known of the world by then is not served.
func TestRemoveInterruptsAScrape(t *testing.T) {
	entered, why := make(chan struct{}), make(chan error, 1)
	c := newCollector(Settings{Job: "heat/spawn1", Site: "alpha", Describe: func(ctx context.Context) *links.Node {
		close(entered)
		<-ctx.Done()
		why <- ctx.Err()
		return sample()
	}})
	scraped := make(chan prometheus.Metric, 1000)
	go func() {
		defer close(scraped)
		c.Collect(scraped)
	}()
	<-entered
	c.end()
	if err := <-why; !errors.Is(err, context.Canceled) {
		t.Errorf("the scrape ends with %v", err)
	}
	served := 0
	for range scraped {
		served++
	}
	if served > 0 {
		t.Errorf("it serves %d metrics", served)
	}
}
