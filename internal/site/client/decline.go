package client

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/rendezvous"
	"github.com/openimpi/impi/internal/site"
	"github.com/openimpi/impi/internal/site/server"
)

// declineTime is how long a site that fails before it has joined its job tries to tell
// the server.
const declineTime = 2 * time.Second

// Decline reports to the server that this site will not join, and why, unless the server need not
// know. done is closed when this has succeeded or failed.
func (m *Client) Decline(f *ending.Failure) (done <-chan struct{}) {
	told := make(chan struct{})
	s := m.Routes.Site.Server
	if m.Routes.Site.Spare || !f.Declines(ending.FailedSite{
		Joined: m.joined, Spawned: m.Spawned, Head: m.Cluster.IsHead(), ServesItself: s.Embedded && s.Clients == 1, AddressInUse: addressTaken(f),
	}) {
		close(told)
		return told
	}
	ctx, cancel := context.WithTimeout(context.Background(), declineTime)
	go func() {
		select {
		case <-m.EndNow:
			cancel()
		case <-ctx.Done():
		}
	}()
	go func() {
		defer close(told)
		defer cancel()
		set, err := m.rendezvous()
		if err != nil {
			m.Log.Debug("cannot tell the server that this site does not join", "reason", err)
			return
		}
		var all sync.WaitGroup
		for _, address := range m.servers() {
			at := set
			at.Server = address
			all.Go(func() { m.declineAt(ctx, at, f) })
		}
		all.Wait()
	}()
	return told
}

func (m *Client) declineAt(ctx context.Context, set rendezvous.Settings, f *ending.Failure) {
	_, _, err := rendezvous.Join(ctx, set, startup.ClientConfig{
		Rank: wire.ClientRank(m.Routes.Site.Client), Auth: server.AuthOf(m.Routes.Site.Auth), Limit: declineTime, Decline: f,
	})
	m.Log.Debug("told the server that this site does not join", "server", set.Server, "outcome", err)
}

func addressTaken(f *ending.Failure) bool {
	return f != nil && (errors.Is(f, syscall.EADDRINUSE) || // errors of the embedded server
		errors.Is(f, site.ErrPortTaken))
}
