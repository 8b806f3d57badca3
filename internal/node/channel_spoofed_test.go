package node

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/connmgr/channel"
	"github.com/openimpi/impi/internal/connmgr/dial"
	"github.com/openimpi/impi/internal/connmgr/meet"
	"github.com/openimpi/impi/internal/rendezvous"
	"github.com/openimpi/impi/internal/site"
)

// spoofed binds the address of a host and connects to the channel port of a site.
func spoofed(t *testing.T, from string, to *running) *net.TCPConn {
	t.Helper()
	<-to.n.listening
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: patience}
	c, err := d.DialContext(t.Context(), "tcp", to.n.hosts[0].Channel.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

// heard is what comes first, or nothing if the connection ends.
func heard(t *testing.T, c net.Conn) []byte {
	t.Helper()
	b := make([]byte, 1<<16)
	n, err := c.Read(b)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
		t.Error(err)
	}
	return b[:n]
}

// overChannels is a job whose packets all take the channels.
func overChannels(resume bool) *config.Job {
	return route(testJob("ring", 1, 1), config.Route{Prefer: []string{"tcp"}, Resume: resume})
}

// wantRing wants the ring's results.
func wantRing(t *testing.T, all []*running) {
	t.Helper()
	wantNone(t, all)
	if said := all[0].out.String(); !strings.Contains(said, "token 2") || strings.Count(said, "token") != 2 {
		t.Errorf("rank 0 printed %q", said)
	}
}

// Somebody with the address of the second site who comes before it and says its host
// rank gets nothing, and the site's own channel is the one that counts.
func TestSpoofedOfAChannel(t *testing.T) {
	for name, resume := range map[string]bool{"plain": false, "resumable": true} {
		t.Run(name, func(t *testing.T) {
			job := overChannels(resume)
			serveApart(t, job)
			alpha := startSites(t, job, job.Sites[:1])
			c := spoofed(t, "127.0.0.3", alpha[0])
			if _, err := c.Write([]byte{0, 0, 0, 1}); err != nil { // before the dance begins
				t.Fatal(err)
			}
			beta := startSites(t, job, job.Sites[1:])
			if b := heard(t, c); len(b) > 0 {
				t.Fatalf("the spoofed host heard %d bytes: %x", len(b), b[:min(len(b), wire.HeaderSize)])
			}
			wantRing(t, append(alpha, beta...))
		})
	}
}

// Many connections that say nothing, stop half-way or prove the wrong thing keep nobody out.
func TestManyAtTheChannelPort(t *testing.T) {
	job := overChannels(false)
	serveApart(t, job)
	alpha := startSites(t, job, job.Sites[:1])
	secret := dynamic.Token{1}
	guess := secret.Channel(dynamic.ChannelEnd{}, dynamic.ChannelEnd{Rank: 1})
	hello := dynamic.Hello{Src: 1, ResumableID: guess.ChannelResumableID(), Resumes: true, Hosts: true}
	for i := range 30 {
		c := spoofed(t, []string{"127.0.0.3", "127.0.0.9"}[i%2], alpha[0])
		d := dynamic.NewDialler(guess, dial.Nonce(), hello)
		says := d.Output()
		if _, err := c.Write(says[:[]int{0, 2, 4, 12, len(says)}[i%5]]); err != nil {
			t.Fatal(err)
		}
	}
	wantRing(t, append(alpha, startSites(t, job, job.Sites[1:])...))
}

// mixed is a job of two sites of ours and one that hides it.
func mixed(auth config.Auth) *config.Job {
	job := testJob("ring", 1, 1, 1)
	for i := range job.Sites {
		job.Sites[i].Auth = auth
	}
	job.Sites[2].Labels.Versions = []config.Version{{}}
	return job
}

// In a job with another MPI the key is what sites of ours prove to each other.
func TestSpoofedInAMixedJob(t *testing.T) {
	job := mixed(config.Auth{Keyed: true, Key: 42})
	serveApart(t, job)
	alpha := startSites(t, job, job.Sites[:1])
	c := spoofed(t, "127.0.0.3", alpha[0])
	if _, err := c.Write([]byte{0, 0, 0, 1}); err != nil {
		t.Fatal(err)
	}
	others := startSites(t, job, job.Sites[1:])
	if b := heard(t, c); len(b) > 0 {
		t.Fatalf("the spoofed host heard %d bytes", len(b))
	}
	wantNone(t, append(alpha, others...))
	if said := alpha[0].out.String(); strings.Count(said, "token 3") != 2 {
		t.Errorf("rank 0 printed %q", said)
	}
	if said := alpha[0].err.String(); strings.Contains(said, "sites of ours are known by their addresses") || !strings.Contains(said, `other MPIs are known by their addresses alone: site=alpha sites="site gamma (client 2)"`) {
		t.Error("it is not said right who proves what")
	}
}

// Without a key their addresses are all there is, and that is said.
func TestSpoofedWhereNothingIsProven(t *testing.T) {
	job := mixed(config.Auth{None: true})
	serveApart(t, job)
	alpha := startSites(t, job, job.Sites[:1])
	c := spoofed(t, "127.0.0.9", alpha[0])
	if _, err := c.Write([]byte{0, 0, 0, 1}); err != nil {
		t.Fatal(err)
	}
	others := startSites(t, job, job.Sites[1:])
	if b := heard(t, c); len(b) > 0 {
		t.Fatalf("the spoofed host heard %d bytes", len(b))
	}
	wantNone(t, append(alpha, others...))
	if said := alpha[0].err.String(); !strings.Contains(said, "sites of ours are known by their addresses alone") {
		t.Error("nobody was told")
	}
}

// Whoever took the port of the other site and cannot prove that it is that hears no
// packet, and the job does not begin.
func TestImpostorWhoListens(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	said := make(chan int, 1)
	go func() {
		most := 0
		for {
			c, err := ln.Accept()
			if err != nil {
				said <- most
				return
			}
			most = max(most, greetWithoutToken(c))
		}
	}()
	host := wire.HostIDFrom(netip.MustParseAddr("127.0.0.2"), wire.IPv4Compatible)
	f, _ := endsInTime(t, 3*time.Second, func(limit time.Duration) *ending.Failure {
		job := overChannels(false)
		serveApart(t, job)
		job.Limits.Start = limit
		beta := startSites(t, job, job.Sites[1:])
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { <-beta[0].done; cancel() }()
		s, _, err := rendezvous.Join(ctx, rendezvous.Settings{Server: job.Sites[1].Server.Address.String()}, startup.ClientConfig{
			Auth: startup.Auth{HasKey: true, Key: 42}, Params: startup.DefaultParams(), Token: [32]byte{5},
			Hosts: []startup.HostConfig{{Address: host, Port: ln.Addr().(*net.TCPAddr).Port, Procs: []startup.ProcConfig{{ID: wire.Proc{Host: host, PID: 7}}}}},
		})
		if err == nil {
			<-s.Lost()
		}
		return end(beta)[0]
	})
	if f == nil || f.Status != ending.StatusTimeout || !strings.Contains(f.Text, "was not reached") || !strings.Contains(f.Text, dynamic.ErrToken.Error()) {
		t.Errorf("%v", f)
	}
	_ = ln.Close()
	if n := <-said; n != 80+40 { // HELLO and PROOF
		t.Errorf("it heard %d bytes", n)
	}
}

// greetWithoutToken greets a dialler without the token, says yes, and counts what it hears.
func greetWithoutToken(c net.Conn) (heard int) {
	defer c.Close()
	n, _ := io.ReadFull(c, make([]byte, 80))
	_, _ = c.Write(append([]byte{0x49, 0x44, 0x4c, 1, 0, 0, 0, 2}, make([]byte, 32)...))
	k, _ := io.ReadFull(c, make([]byte, 40))
	_, _ = c.Write(append([]byte{0x49, 0x44, 0x4c, 1, 0, 0, 0, 4, 0, 0, 0, 0}, make([]byte, 32)...))
	rest, _ := io.ReadAll(c)
	return n + k + len(rest)
}

// A job without a secret has no token, and a channel's opens nothing else: zeros are nobody's
// proof.
func TestWhatOpensDirectLinks(t *testing.T) {
	n := twoSites(t)
	n.site = &site.Site{Hosts: []*site.Host{{Rank: 0}, {Rank: 1}}}
	n.job.Hosts = []startup.HostInfo{{}, {}, {Client: 1, Port: 7}}
	n.job.Secret[0], n.job.Clients[0].Own, n.job.Clients[1].Own = 1, true, true
	n.channels = channel.New(channel.Settings{Site: n.site, Routes: n.routes})
	n.meetings = meet.New(meet.Settings{Token: n.job.Token})
	ends := func(h wire.HostRank) dynamic.ChannelEnd {
		x := n.job.Hosts[h]
		return dynamic.ChannelEnd{Rank: h, Address: x.Address, Port: uint16(x.Port)}
	}
	secret := dynamic.Token(n.job.Secret)
	token := secret.Channel(ends(1), ends(2))
	keys := n.keys(&site.Listener{Host: n.site.Hosts[1]})
	var zeros dynamic.Token
	if _, ok := keys(zeros.World(), dynamic.OfJob); ok {
		t.Error("a token of zeros opens direct links")
	}
	if _, ok := keys(token.World(), dynamic.OfJob); ok {
		t.Error("a channel's token opens direct links")
	}
	if got, ok := keys(token.World(), dynamic.OfChannel); !ok || got != token {
		t.Error("a channel's token opens no channel")
	}
}
