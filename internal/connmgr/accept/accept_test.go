package accept

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/launch/launchtest"
	"github.com/openimpi/impi/internal/lifetime"
	"github.com/openimpi/impi/internal/loopback"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/site"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/transports/tcp"
)

// TestIdleConnectionsNeedNoThreads: a connection that does not greet costs its node no thread,
// and all listeners together let in no more of them than one may.
func TestIdleConnectionsNeedNoThreads(t *testing.T) {
	const many, stay = 300, 128
	ctx, cancel := context.WithCancel(t.Context())
	running := lifetime.NewGroup(ctx)
	arrivals := New(Settings{
		Tasks: running, Log: hclog.NewNullLogger(), Keys: func(*site.Listener) dynamic.Keys { return dynamic.KeysOfJob(dynamic.Token{1}) },
		Handle: func(context.Context, *Arrival) error { t.Error("somebody has proved to be of the job"); return nil },
	})
	t.Cleanup(running.Close)
	t.Cleanup(cancel)
	before := launchtest.Threads(t)
	ended := make(chan struct{}, 2*many)
	for range 2 {
		l, err := tcp.New().Listen(ctx, transports.ListenSpec{Host: "127.0.0.1", IPChannel: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		arrivals.Serve(&site.Listener{Listener: l, Transport: &routes.Transport{Name: "tcp"}})
		for _, c := range loopback.ConnectSilently(t, many, l.Address()) {
			go func() {
				_, _ = io.Copy(io.Discard, c)
				ended <- struct{}{}
			}()
		}
	}
	late := time.After(time.Minute)
	for i := range 2*many - stay {
		select {
		case <-ended:
		case <-late:
			t.Fatalf("%d of %d connections were sent away, want all but %d", i, 2*many, stay)
		}
	}
	if more := launchtest.Threads(t) - before; more > stay/4 {
		t.Errorf("%d connections that wait have %d threads", stay, more)
	}
}
