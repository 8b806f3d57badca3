package node

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/internal/rendezvous"
	"github.com/openimpi/impi/internal/rendezvous/relaytest"
	"github.com/openimpi/impi/internal/site/server"
)

// goesOn is what a site says of its server.
const goesOn = "the job's server is lost, and the job goes on without it"

// serverBehind starts the sites of a job whose server is behind a relay, and waits until all run.
// Rank 0 waits for a line of input, which word gives it.
func serverBehind(t *testing.T, job *config.Job) (all []*running, r *relaytest.Relay, word func()) {
	t.Helper()
	serveApart(t, job)
	r = relaytest.New(t, job.Sites[0].Server.Address.String(), nil)
	for i := range job.Sites {
		job.Sites[i].Server.Address = r.AddrPort()
	}
	all, word = startReady(t, job)
	return all, r, word
}

// startReady starts the sites of a job and waits until its program is ready, which goes on at the
// word.
func startReady(t *testing.T, job *config.Job) (all []*running, word func()) {
	t.Helper()
	in, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	all = startSites(t, job, job.Sites, func(o *Options) {
		if o.Site.Client == 0 {
			o.Stdin = in
		}
	})
	all[0].out.Line(t, "[0] ready")
	return all, func() { _ = w.Close() }
}

// lose ends the server for all sites, as they see it, and waits until each has said so.
func lose(t *testing.T, all []*running, r *relaytest.Relay) {
	t.Helper()
	r.Close()
	for i, x := range all {
		if !x.err.Await(goesOn, 1) {
			t.Errorf("site %d does not say that the server is lost:\n%s", i, x.err)
		}
	}
}

// TestServerLost: the job ends in order without its server, and each site has said once what is
// lost.
func TestServerLost(t *testing.T) {
	for name, resume := range map[string]bool{"at once": false, "after it was dialled again": true} {
		t.Run(name, func(t *testing.T) {
			job := testJob("onword", 2, 2, 1)
			if resume {
				route(job, config.Route{Prefer: []string{"unix", "tcp"}, Direct: true, Resume: true})
				job.Limits.Resume = patience // a server that is refused is given up earlier
			}
			all, r, word := serverBehind(t, job)
			lose(t, all, r)
			word()
			wantNone(t, all)
			for i, x := range all {
				if n := strings.Count(x.err.String(), goesOn); n != 1 {
					t.Errorf("site %d says %d times that the server is lost:\n%s", i, n, x.err)
				}
				_, line, _ := strings.Cut(x.err.String(), goesOn)
				if line, _, _ = strings.Cut(line, "\n"); strings.Contains(line, "client") || !strings.Contains(line, "server=127.0.0.1:") || !strings.Contains(line, "reason=") {
					t.Errorf("site %d says of the lost server:%s", i, line)
				}
			}
		})
	}
}

// TestProcKilledWithoutServer: all sites name the proc that was killed, with the statuses that they
// have with a server.
func TestProcKilledWithoutServer(t *testing.T) {
	all, r, _ := serverBehind(t, testJob("onword", 2, 2, 1))
	pid := all[1].out.Number(t, "[2] pid ")
	lose(t, all, r)
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	f := wantAll(t, all, "rank 2 on site beta was killed by SIGKILL")
	if f[1].Status != 137 || f[0].Status != ending.StatusRemote || f[2].Status != ending.StatusRemote {
		t.Errorf("%+v, %+v, %+v", f[0], f[1], f[2])
	}
}

// TestPeersAreToldFirst: a node whose part of the job fails tells the other sites before it waits
// for those who look at it, as metrics and pages do.
func TestPeersAreToldFirst(t *testing.T) {
	all, r, word := serverBehind(t, testJob("abortonword", 2, 1, 1))
	all[1].n.unserve = func() {
		limit, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for _, i := range []int{0, 2} {
			select {
			case <-all[i].done:
			case <-limit.Done():
				t.Errorf("site %d goes on", i)
			}
		}
	}
	lose(t, all, r)
	word()
	wantAll(t, all, "rank 2 on site beta called MPI Abort with code 7: on purpose")
}

// TestAbortWithoutServer is TestProcKilledWithoutServer for MPI_Abort, and for a server that does
// not answer any more, which no site has noticed.
func TestAbortWithoutServer(t *testing.T) {
	for name, silent := range map[string]bool{"lost": false, "silent": true} {
		t.Run(name, func(t *testing.T) {
			all, r, word := serverBehind(t, testJob("abortonword", 2, 1, 1))
			if silent {
				r.Stall()
			} else {
				lose(t, all, r)
			}
			word()
			f := wantAll(t, all, "rank 2 on site beta called MPI Abort with code 7: on purpose")
			if f[1].Status != 7 || f[0].Status != ending.StatusRemote || f[2].Status != ending.StatusRemote {
				t.Errorf("%+v, %+v, %+v", f[0], f[1], f[2])
			}
		})
	}
}

// TestHostsFailWithoutServer: what a host of a site of several finds out is told by its head.
func TestHostsFailWithoutServer(t *testing.T) {
	job := testJob("onword", 1, 1)
	for i := range job.Sites {
		h := job.Sites[i].Hosts[0]
		job.Sites[i].Hosts = []config.Host{h, h, h}
	}
	all, r, _ := serverBehind(t, job)
	pid := all[1].out.Number(t, "[5] pid ")
	lose(t, all, r)
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wantAll(t, all, "rank 5 on site beta was killed by SIGKILL")
}

// serveAlone is serveApart with a server that is no part of a site, as impi-server is. over gets
// its outcome.
func serveAlone(t *testing.T, job *config.Job) (over <-chan error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for i := range job.Sites {
		job.Sites[i].Server.Address = ln.Addr().(*net.TCPAddr).AddrPort()
	}
	outcome := make(chan error, 1)
	go func() {
		outcome <- rendezvous.Serve(t.Context(), ln, rendezvous.Config{
			Server: startup.ServerConfig{Clients: len(job.Sites), Auth: server.AuthOf(job.Sites[0].Auth), SurvivesLoss: true},
		})
	}()
	return outcome
}

// betaApart starts the sites of a job of which beta alone reaches the server by a relay, and cuts
// that.
func betaApart(t *testing.T, job *config.Job) (all []*running, word func()) {
	t.Helper()
	r := relaytest.New(t, job.Sites[1].Server.Address.String(), nil)
	job.Sites[1].Server.Address = r.AddrPort()
	all, word = startReady(t, job)
	r.Close()
	for i, says := range []string{othersLost, goesOn, othersLost} {
		if !all[i].err.Await(says, 1) {
			t.Errorf("site %d does not say %q:\n%s", i, says, all[i].err)
		}
	}
	return all, word
}

// othersLost is what a site says when its server has lost another one, and goes on.
const othersLost = "the job's server has lost another site, and the job goes on"

// TestSiteAloneLosesTheServer: the job and the server go on if the server and one site have lost
// each other, and end in order; the others say whom the server has lost.
func TestSiteAloneLosesTheServer(t *testing.T) {
	job := testJob("onword", 2, 2, 1)
	over := serveAlone(t, job)
	all, word := betaApart(t, job)
	word()
	wantNone(t, all)
	for _, i := range []int{0, 2} {
		if s := all[i].err.String(); !strings.Contains(s, "connection was lost before FINI") || !strings.Contains(s, "(client 1) at 127.0.0.1:") || strings.Contains(s, goesOn) {
			t.Errorf("site %d does not say that the server has lost site beta, and no more:\n%s", i, s)
		}
	}
	if err := <-over; err != nil {
		t.Errorf("the server: %v", err)
	}
}

// TestServerEndsWithALostSite: one that is part of a site, or of an older release, ends, and the
// job goes on.
func TestServerEndsWithALostSite(t *testing.T) {
	job := testJob("onword", 2, 2, 1)
	serveApart(t, job)
	r := relaytest.New(t, job.Sites[1].Server.Address.String(), nil)
	job.Sites[1].Server.Address = r.AddrPort()
	all, word := startReady(t, job)
	lose(t, all, r)
	word()
	wantNone(t, all)
}

// TestProcKilledAtASiteApart: a site that the server has lost tells the others of a failure, as
// they it.
func TestProcKilledAtASiteApart(t *testing.T) {
	for rank, says := range map[string]string{
		"[2] pid ": "rank 2 on site beta was killed by SIGKILL", "[4] pid ": "rank 4 on site gamma was killed by SIGKILL",
	} {
		t.Run(says, func(t *testing.T) {
			job := testJob("onword", 2, 2, 1)
			over := serveAlone(t, job)
			all, _ := betaApart(t, job)
			pid := all[map[string]int{"[2] pid ": 1, "[4] pid ": 2}[rank]].out.Number(t, rank)
			if err := unix.Kill(pid, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			wantAll(t, all, says)
			if err := <-over; err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("the server was told: %v", err)
			}
		})
	}
}

// TestServerLostInTheStart: before all sites have joined there is no job without a server.
func TestServerLostInTheStart(t *testing.T) {
	job := testJob("onword", 1, 1)
	serveApart(t, job)
	r := relaytest.New(t, job.Sites[0].Server.Address.String(), nil)
	job.Sites[0].Server.Address = r.AddrPort()
	all := startSites(t, job, job.Sites[:1])
	all[0].err.Await("startup: connected", 1)
	r.Close()
	f := end(all)[0]
	if f == nil || f.Status != ending.StatusRemote || !strings.Contains(f.Text, "the server is at "+r.Addr()) {
		t.Errorf("%+v", f)
	}
}

// TestServerOfASiteLost: a server in a node is lost with the node, and so is the job.
func TestServerOfASiteLost(t *testing.T) {
	job := testJob("onword", 1, 1)
	for i := range job.Sites {
		job.Sites[i].Server.Ours = true
	}
	all, r, _ := serverBehind(t, job)
	r.Close()
	f := end(all)
	for i := range f {
		if f[i] == nil || f[i].Status != ending.StatusRemote || !strings.Contains(f[i].Text, "the server is at "+r.Addr()) {
			t.Errorf("site %d: %+v", i, f[i])
		}
	}
}

// TestStandbyServer: the sites meet at the second server of their list, as the first one is down.
func TestStandbyServer(t *testing.T) {
	job := testJob("named", 1, 1)
	serveApart(t, job)
	down := relaytest.New(t, job.Sites[0].Server.Address.String(), nil)
	down.Close()
	for i := range job.Sites {
		s := &job.Sites[i].Server
		s.Standby = []config.ServerAddress{{Address: s.Address}}
		s.Address = down.AddrPort()
	}
	all := startSites(t, job, job.Sites)
	wantNone(t, all)
	for i, x := range all {
		if want := "the sites have met: site=" + siteName(i) + " server=" + job.Sites[i].Server.Standby[0].String(); !strings.Contains(x.err.String(), want) {
			t.Errorf("site %d does not say %q:\n%s", i, want, x.err)
		}
	}
}
