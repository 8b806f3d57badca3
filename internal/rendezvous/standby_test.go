package rendezvous

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/loopback"
	"github.com/openimpi/impi/internal/rendezvous/relaytest"
	"github.com/openimpi/impi/internal/transcript"
)

// met is what JoinAny returns.
type met struct {
	joined
	at  string
	log transcript.Writer
}

// joinLists has clients join, each with a list of servers. once is called when all have begun.
func joinLists(t *testing.T, own *OwnServer, limit time.Duration, once func(), lists ...[]string) []*met {
	t.Helper()
	all := make([]*met, len(lists))
	var wg sync.WaitGroup
	for i, servers := range lists {
		m := &met{}
		all[i] = m
		wg.Go(func() {
			cfg := client(wire.ClientRank(i))
			cfg.Limit = limit
			set := Settings{Own: own, MeetLimit: 100 * time.Millisecond, Logger: hclog.New(&hclog.LoggerOptions{Output: &m.log, Level: hclog.Debug})}
			m.s, m.j, m.at, m.err = JoinAny(t.Context(), set, servers, cfg)
		})
	}
	once()
	wg.Wait()
	return all
}

// wantMet wants all to have met at a server, and ends the job.
func wantMet(t *testing.T, all []*met, at *job) {
	t.Helper()
	for i, m := range all {
		if m.err != nil || m.at != at.addr {
			t.Fatalf("client %d is at %q, not %s: %v\n%s", i, m.at, at.addr, m.err, m.log.String())
		}
		if !strings.Contains(m.log.String(), "the sites have met: server="+at.addr) {
			t.Errorf("client %d does not say where:\n%s", i, m.log.String())
		}
	}
	for _, m := range all {
		if err := m.s.Finish(); err != nil {
			t.Error(err)
		}
	}
	if err := <-at.result; err != nil {
		t.Error(err)
	}
}

// TestStandby: the sites meet at the first server at which all of them can be, also if each reaches
// others besides.
func TestStandby(t *testing.T) {
	for name, own := range map[string]*OwnServer{"plain": nil, "ours": {Resume: time.Minute}} {
		for _, c := range []struct {
			name  string
			sites []string // which servers each reaches: the second one is where they meet
		}{
			{"the first is down", []string{"-B", "-B"}},
			{"the first is for the one that decides", []string{"AB", "-B"}},
			{"the first is for others", []string{"-B", "AB", "AB"}},
			{"each reaches another", []string{"ABC", "AB-", "-BC"}},
		} {
			t.Run(name+": "+c.name, func(t *testing.T) {
				servers := make(map[rune]*job)
				for _, x := range "ABC" {
					servers[x] = serve(t, startup.ServerConfig{Clients: len(c.sites)})
				}
				var lists [][]string
				for _, site := range c.sites {
					var list []string
					for _, x := range site {
						if x == '-' {
							list = append(list, loopback.Unused(t))
						} else {
							list = append(list, servers[x].addr)
						}
					}
					lists = append(lists, list)
				}
				wantMet(t, joinLists(t, own, time.Minute, func() {}, lists...), servers['B'])
			})
		}
	}
}

// TestStandbyThatIsNotNeeded: it ends in order once the sites have met elsewhere.
func TestStandbyThatIsNotNeeded(t *testing.T) {
	cfg := Config{Server: startup.ServerConfig{Clients: 2, Auth: startup.Auth{None: true}}}
	a, b := serveOwn(t, cfg), serveOwn(t, cfg)
	list := []string{a.addr, b.addr}
	other := make(chan *met)
	go func() {
		m := &met{}
		m.s, m.j, m.at, m.err = JoinAny(t.Context(), Settings{}, list, client(1))
		other <- m
	}()
	for a.count(startup.EventJoined) == 0 || b.count(startup.EventJoined) == 0 { // the one that decides comes last
		runtime.Gosched()
	}
	s, _, at, err := JoinAny(t.Context(), Settings{}, list, client(0))
	m := <-other
	if err := errors.Join(err, m.err); err != nil || at != a.addr || m.at != a.addr {
		t.Fatalf("at %s and %s: %v", at, m.at, err)
	}
	if err := <-b.result; err != nil {
		t.Errorf("the server that was not needed: %v", err)
	}
	if err := errors.Join(s.Finish(), m.s.Finish(), <-a.result); err != nil {
		t.Error(err)
	}
}

// TestServerLostWhileSitesJoin: they go on to the next one.
func TestServerLostWhileSitesJoin(t *testing.T) {
	a, b := serve(t, startup.ServerConfig{Clients: 3}), serve(t, startup.ServerConfig{Clients: 2})
	r := relaytest.New(t, a.addr, nil) // of three, of which one never comes
	wantMet(t, joinLists(t, nil, time.Minute, func() {
		r.Await(1)
		r.Close()
	}, []string{r.Addr(), b.addr}, []string{r.Addr(), b.addr}), b)
}

// TestNoServerOfAList: what each of them says is named, and who cannot join at any does not wait.
func TestNoServerOfAList(t *testing.T) {
	a := serve(t, startup.ServerConfig{Clients: 2})
	gone := loopback.Unused(t)
	for rank, list := range [][]string{{a.addr, gone}, {gone, a.addr}} {
		cfg := client(wire.ClientRank(rank))
		cfg.Limit = 500 * time.Millisecond
		_, _, _, err := JoinAny(t.Context(), Settings{MeetLimit: 100 * time.Millisecond}, list, cfg)
		wantError(t, "client", err, startup.ErrTimeout, "the sites have met at none of the servers")
		for _, x := range []string{a.addr + ": ", gone + ": the server cannot be reached"} {
			if err == nil || !strings.Contains(err.Error(), x) {
				t.Errorf("client %d does not say %q: %v", rank, x, err)
			}
		}
	}
	keyed := startup.Auth{HasKey: true, Key: 7}
	x, y := serve(t, startup.ServerConfig{Clients: 1, Auth: keyed}), serve(t, startup.ServerConfig{Clients: 1, Auth: keyed})
	cfg := client(0)
	cfg.Auth = startup.Auth{HasKey: true, Key: 8}
	_, _, _, err := JoinAny(t.Context(), Settings{}, []string{x.addr, y.addr}, cfg)
	wantError(t, "client", err, startup.ErrAuth, "wrong key")
}

// TestSiteFailsAtAList: what a site says at one server ends the start of all.
func TestSiteFailsAtAList(t *testing.T) {
	a, b := serveOwn(t, Config{Server: startup.ServerConfig{Clients: 2, Auth: startup.Auth{None: true}}}), loopback.Unused(t)
	all := make([]joined, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _, _, all[0].err = JoinAny(t.Context(), Settings{}, []string{b, a.addr}, client(1))
	}()
	for a.count(startup.EventJoined) == 0 {
		runtime.Gosched()
	}
	func() {
		cfg := client(0)
		cfg.Decline = errors.New("proc 1 exited with status 5")
		_, _, err := Join(t.Context(), Settings{Server: a.addr}, cfg)
		if err == nil {
			t.Error("it joined")
		}
	}()
	<-done
	wantError(t, "client", all[0].err, startup.ErrFailed, "proc 1 exited with status 5")
}
