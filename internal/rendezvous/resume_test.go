package rendezvous

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/rendezvous/relaytest"
	"github.com/openimpi/impi/internal/transcript"
	"github.com/openimpi/impi/plugins/sdk/support/pki"
	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
)

var resumable = &OwnServer{NeedTLS: true, Resume: 30 * time.Second}

// joinAll makes n clients with resumable connections join through addr.
func joinAll(t *testing.T, addr string, n int, own *OwnServer) []*Client {
	t.Helper()
	all, errs := make([]*Client, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { all[i], errs[i] = ownJoin(t, addr, own, keyedClient(wire.ClientRank(i)), nil) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return all
}

// finishAll has all clients finish at once.
func finishAll(all []*Client) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, s := range all {
		wg.Go(func() { errs[i] = s.Finish() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// TestCutWhileTheJobRuns: connections that are cut are replaced, whichever side notices,
// and the job ends well, with each client once. The loss of a client that does not resume
// ends the job.
func TestCutWhileTheJobRuns(t *testing.T) {
	for name, cut := range map[string]func(*relaytest.Relay){"both ends": (*relaytest.Relay).Cut, "the client's end": (*relaytest.Relay).CutClients} {
		t.Run(name, func(t *testing.T) {
			srv := serveOwn(t, Config{Server: startup.ServerConfig{Clients: 2, Auth: keyed}})
			r := relaytest.New(t, srv.addr, nil)
			all := joinAll(t, r.Addr(), 2, resumable)
			for range 3 {
				before := r.Connections()
				cut(r)
				r.Await(before + 2)
			}
			cut(r)
			if err := errors.Join(finishAll(all), <-srv.result); err != nil {
				t.Fatal(err)
			}
			if n := srv.count(startup.EventFinished); n != 2 {
				t.Errorf("%d clients have finished", n)
			}
		})
	}
	srv := serveOwn(t, Config{Server: startup.ServerConfig{Clients: 1, Auth: keyed}})
	r := relaytest.New(t, srv.addr, nil)
	all := joinAll(t, r.Addr(), 1, &OwnServer{NeedTLS: true})
	r.Cut()
	<-all[0].Lost()
	wantError(t, "client", all[0].Err(), startup.ErrLost, "")
	wantError(t, "server", <-srv.result, startup.ErrLost, "before FINI")
}

// TestWhyAConnectionEnded: who knows why a client's connection is lost is heard before the job
// fails by that, once, and the other clients are told; who knows nothing leaves it as it is.
func TestWhyAConnectionEnded(t *testing.T) {
	for _, known := range []error{errors.New("its node was struck"), nil} {
		asked := make(chan wire.ClientRank, 2)
		srv := serveOwn(t, Config{Server: startup.ServerConfig{Clients: 2, Auth: keyed}, Why: func(client wire.ClientRank, _ <-chan struct{}) error {
			asked <- client
			return known
		}})
		r := relaytest.New(t, srv.addr, nil)
		others := joinAll(t, r.Addr(), 2, &OwnServer{NeedTLS: true})
		r.Cut()
		err := <-srv.result
		wantError(t, "server", err, startup.ErrLost, "before FINI")
		if known != nil && !strings.Contains(err.Error(), known.Error()) {
			t.Errorf("%v, without %q", err, known)
		}
		if c := <-asked; c != 0 && c != 1 {
			t.Errorf("asked about client %d", c)
		}
		for _, o := range others {
			<-o.Lost()
		}
	}
}

// TestCutInStartup: connections that are cut after ever more bytes, from the first word of
// the resumable stream on.
func TestCutInStartup(t *testing.T) {
	for bytes := 2500; bytes < 9000; bytes += 1300 {
		srv := serveOwn(t, Config{Server: startup.ServerConfig{Clients: 2, Auth: keyed}})
		r := relaytest.New(t, srv.addr, func(n int) int { return bytes + 100*n })
		all := joinAll(t, r.Addr(), 2, resumable)
		if err := errors.Join(finishAll(all), <-srv.result); err != nil {
			t.Fatalf("cut after %d bytes: %v", bytes, err)
		}
		if n := srv.count(startup.EventFinished); n != 2 {
			t.Errorf("%d clients have finished", n)
		}
	}
}

// TestRenew: with new certificates a client makes a new connection, and keeps the old one until the
// server has new ones as well. Nothing is lost.
func TestRenew(t *testing.T) {
	old, fresh := pkitest.Authority(t), pkitest.Authority(t)
	of := func(ca *pki.Authority) *Identity {
		id, err := LoadIdentity(pkitest.Site(t, "site", ca, ca, nil), "/")
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	server, site := of(old), of(old)
	srv := serveOwn(t, Config{Server: startup.ServerConfig{Clients: 1, Auth: keyed}, Identity: server})
	r := relaytest.New(t, srv.addr, nil)
	c := joinAll(t, r.Addr(), 1, &OwnServer{Identity: site, NeedTLS: true, Resume: 30 * time.Second})[0]
	site.Replace(of(fresh))
	if !c.Renew() {
		t.Fatal("it cannot be made anew")
	}
	r.Await(2) // which the server refuses
	l := c.nc.(*resumableConn)
	l.mu.Lock()
	if s := l.machine.Status(); s.State != resume.Up || s.Epoch != 1 {
		t.Errorf("refused: %+v", s)
	}
	l.mu.Unlock()
	server.Replace(of(fresh))
	l.mu.Lock()
	for l.machine.Status().Epoch == 1 {
		l.more.Wait()
	}
	l.mu.Unlock()
	if err := errors.Join(c.Finish(), <-srv.result); err != nil {
		t.Fatal(err)
	}
	if n := srv.count(startup.EventFinished); n != 1 {
		t.Errorf("%d clients have finished", n)
	}

	plain := serveOwn(t, Config{Server: startup.ServerConfig{Clients: 1, Auth: keyed}})
	c = joinAll(t, plain.addr, 1, &OwnServer{NeedTLS: true})[0]
	if c.Renew() {
		t.Error("a connection that is not resumable is made anew")
	}
	if err := errors.Join(c.Finish(), <-plain.result); err != nil {
		t.Fatal(err)
	}
}

// TestHowLongIsDialled: when a connection is lost, the log says for how long it is dialled again,
// and that it is not as long if the server refuses connections.
func TestHowLongIsDialled(t *testing.T) {
	for limit, want := range map[time.Duration]string{30 * time.Second: "again: for=30s or_if_refused_for=10s reason=", 9 * time.Second: "again: for=9s reason="} {
		srv := serveOwn(t, Config{Server: startup.ServerConfig{Clients: 1, Auth: keyed}})
		r := relaytest.New(t, srv.addr, nil)
		log := &transcript.Writer{}
		c, err := ownJoin(t, r.Addr(), &OwnServer{NeedTLS: true, Resume: limit}, keyedClient(0), log)
		if err != nil {
			t.Fatal(err)
		}
		if r.Cut(); !log.Await(want, 1) {
			t.Errorf("no %q in\n%s", want, log)
		}
		if err := errors.Join(c.Finish(), <-srv.result); err != nil {
			t.Error(err)
		}
	}
}

// TestFailArrivesOnce: the FAIL of a client whose connection was cut arrives once.
func TestFailArrivesOnce(t *testing.T) {
	srv := serveOwn(t, Config{Server: startup.ServerConfig{Clients: 2, Auth: keyed}})
	r := relaytest.New(t, srv.addr, nil)
	all := joinAll(t, r.Addr(), 2, resumable)
	r.Cut()
	_ = all[0].Fail(errors.New("rank 3 was killed"))
	<-all[1].Lost()
	wantError(t, "the other client", all[1].Err(), startup.ErrFailed, "rank 3 was killed")
	wantError(t, "server", <-srv.result, startup.ErrFailed, "client 0 (127.0.0.1:")
	if n := srv.count(startup.EventFailed); n != 1 {
		t.Errorf("the job failed %d times", n)
	}
}

// TestClientThatDoesNotComeBack: the server waits as long as both want, and says so.
func TestClientThatDoesNotComeBack(t *testing.T) {
	srv := serveOwn(t, Config{Server: startup.ServerConfig{Clients: 2, Auth: keyed}, MaxResume: 50 * time.Millisecond})
	r := relaytest.New(t, srv.addr, nil)
	gone := joinAllAt(t, []string{r.Addr(), srv.addr})
	r.Close()
	wantError(t, "server", <-srv.result, startup.ErrLost, "client 0 (127.0.0.1:")
	<-gone[1].Lost()
	wantError(t, "the other client", gone[1].Err(), startup.ErrFailed, "it was not made again within 50ms")
	<-gone[0].Lost()
	wantError(t, "the client itself", gone[0].Err(), startup.ErrLost, "connection refused")
}

// joinAllAt has a client join at each address.
func joinAllAt(t *testing.T, addrs []string) []*Client {
	t.Helper()
	all, errs := make([]*Client, len(addrs)), make([]error, len(addrs))
	var wg sync.WaitGroup
	for i, addr := range addrs {
		wg.Go(func() { all[i], errs[i] = ownJoin(t, addr, resumable, keyedClient(wire.ClientRank(i)), nil) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestServerThatKeepsNoSessions: without sessions a cut ends the job, as without resume.
func TestServerThatKeepsNoSessions(t *testing.T) {
	srv := serveOwn(t, Config{Server: startup.ServerConfig{Clients: 1, Auth: keyed}, MaxResume: -1})
	r := relaytest.New(t, srv.addr, nil)
	all := joinAll(t, r.Addr(), 1, resumable)
	r.Cut()
	<-all[0].Lost()
	wantError(t, "server", <-srv.result, startup.ErrLost, "before FINI")
	wantError(t, "client", all[0].Err(), startup.ErrLost, "")
}

// TestSessionsOfOthers: a client that knows the key and the name of a session, but not its
// secret, does not get it, and its owner can continue.
func TestSessionsOfOthers(t *testing.T) {
	srv := serveOwn(t, Config{Server: startup.ServerConfig{Clients: 1, Auth: keyed}})
	r := relaytest.New(t, srv.addr, nil)
	s := joinAll(t, r.Addr(), 1, resumable)[0]
	attacker := newOwnClient(resumable, keyed, hclog.NewNullLogger())
	attacker.session = sessionOf(s)
	for what, secret := range map[string][]byte{"another secret": bytes.Repeat([]byte{7}, 32), "none": {}} {
		attacker.secret = secret
		nc, err := net.Dial("tcp", srv.addr)
		if err != nil {
			t.Fatal(err)
		}
		_, err = attacker.greet(t.Context(), nc)
		var refused *refusal
		if !errors.As(err, &refused) || !strings.Contains(refused.text, "another client's") {
			t.Errorf("%s: %v", what, err)
		}
	}
	attacker.session[0]++
	nc, err := net.Dial("tcp", srv.addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = attacker.greet(t.Context(), nc); err == nil || !strings.Contains(err.Error(), "does not know the session") {
		t.Errorf("no such session: %v", err)
	}
	r.Cut()
	if err := errors.Join(s.Finish(), <-srv.result); err != nil {
		t.Error(err)
	}
}

func sessionOf(s *Client) (id [16]byte) {
	l := s.nc.(*resumableConn)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.id
}
