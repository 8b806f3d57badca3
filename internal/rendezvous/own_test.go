package rendezvous

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/rendezvous/relaytest"
	"github.com/openimpi/impi/internal/transcript"
	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
	"github.com/openimpi/impi/plugins/sdk/transports/identity"
)

var keyed = startup.Auth{HasKey: true, Key: 0x4b45594b45594b45}

// ownServer is a server with all that Config has.
type ownServer struct {
	job
	mu     sync.Mutex
	events []startup.Event
	log    transcript.Writer
}

func serveOwn(t *testing.T, cfg Config) *ownServer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &ownServer{job: job{addr: ln.Addr().String(), result: make(chan error, 1)}}
	cfg.Notify = func(e startup.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, e)
	}
	cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: &s.log, Level: hclog.Debug})
	go func() { s.result <- Serve(t.Context(), ln, cfg) }()
	return s
}

// count is how often something happened.
func (s *ownServer) count(kind startup.EventKind) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

func keyedClient(rank wire.ClientRank) startup.ClientConfig {
	c := client(rank)
	c.Auth = keyed
	copy(c.Token[:], "the token of this job is secret.")
	return c
}

// ownJoin joins as a node of ours does.
func ownJoin(t *testing.T, addr string, own *OwnServer, cfg startup.ClientConfig, log io.Writer) (*Client, error) {
	t.Helper()
	if log == nil {
		log = t.Output()
	}
	s, _, err := Join(t.Context(), Settings{Server: addr, Own: own,
		Logger: hclog.New(&hclog.LoggerOptions{Output: log, Level: hclog.Debug})}, cfg)
	return s, err
}

// TestNothingIsReadableOnTheWay: between a client and a server of ours neither the key, nor
// the job's token, nor IMPI's commands can be read; in plain IMPI they can.
func TestNothingIsReadableOnTheWay(t *testing.T) {
	var key [8]byte
	binary.BigEndian.PutUint64(key[:], keyed.Key)
	secrets := map[string][]byte{"the key": key[:], "AUTH": []byte("AUTH"), "the token": []byte("the token of this job is secret."), "a card": []byte("card")}
	for _, own := range []*OwnServer{nil, {}, {NeedTLS: true, Resume: 1e9}} {
		srv := serveOwn(t, Config{Server: startup.ServerConfig{Clients: 1, Auth: keyed}})
		r := relaytest.New(t, srv.addr, nil)
		s, err := ownJoin(t, r.Addr(), own, keyedClient(0), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Finish(), <-srv.result); err != nil {
			t.Fatal(err)
		}
		for name, secret := range secrets {
			if got, want := bytes.Contains(r.Bytes(), secret), own == nil; got != want {
				t.Errorf("%+v: %s is readable: %v", own, name, got)
			}
		}
	}
}

// TestForeignClientBesideOurs: plain IMPI works at the same port, unless it is forbidden.
func TestForeignClientBesideOurs(t *testing.T) {
	srv := serveOwn(t, Config{Server: startup.ServerConfig{Clients: 2, Auth: keyed}})
	results := make(chan error, 2)
	for rank, own := range []*OwnServer{nil, {NeedTLS: true, Resume: 1e9}} {
		go func() {
			s, err := ownJoin(t, srv.addr, own, keyedClient(wire.ClientRank(rank)), nil)
			if err == nil {
				err = s.Finish()
			}
			results <- err
		}()
	}
	if err := errors.Join(<-results, <-results, <-srv.result); err != nil {
		t.Fatal(err)
	}
	closed := serveOwn(t, Config{Server: startup.ServerConfig{Clients: 1, Auth: keyed}, NeedTLS: true})
	_, err := ownJoin(t, closed.addr, nil, keyedClient(0), nil)
	wantError(t, "plain client", err, startup.ErrFailed, "accepts only TLS")
	s, err := ownJoin(t, closed.addr, &OwnServer{}, keyedClient(0), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Finish(), <-closed.result); err != nil {
		t.Error(err)
	}
}

// TestKeysOfOurs: a client with another key, or without one, is told so, and neither side
// reveals a key.
func TestKeysOfOurs(t *testing.T) {
	other := startup.Auth{HasKey: true, Key: 5}
	none := startup.Auth{None: true}
	for _, c := range []struct {
		server, client startup.Auth
		want           error
		says           string
	}{
		{keyed, other, startup.ErrFailed, "wrong key"},
		{none, keyed, startup.ErrAuth, "the same auth block"},
		{keyed, none, startup.ErrFailed, "authentication failed"},
		{startup.Auth{None: true, HasKey: true, Key: 5}, keyed, startup.ErrFailed, "wrong key"},
		{none, startup.Auth{None: true, HasKey: true, Key: keyed.Key}, nil, ""},
		{startup.Auth{None: true, HasKey: true, Key: keyed.Key}, none, nil, ""},
		{startup.Auth{None: true, HasKey: true, Key: keyed.Key}, keyed, nil, ""},
	} {
		srv := serveOwn(t, Config{Server: startup.ServerConfig{Clients: 1, Auth: c.server}})
		cfg := client(0)
		cfg.Auth = c.client
		s, err := ownJoin(t, srv.addr, &OwnServer{}, cfg, nil)
		if c.want != nil {
			wantError(t, "client", err, c.want, c.says)
			cfg.Auth = c.server // the job goes on
			if s, err = ownJoin(t, srv.addr, &OwnServer{}, cfg, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err != nil {
			t.Errorf("%v at %v: %v", c.client, c.server, err)
			continue
		}
		if err := errors.Join(s.Finish(), <-srv.result); err != nil {
			t.Error(err)
		}
	}
}

// TestProvenWrongKeysCount: those that are proven wrong count like those that are sent, and
// end nothing.
func TestProvenWrongKeysCount(t *testing.T) {
	srv := serveOwn(t, Config{Server: startup.ServerConfig{Clients: 1, Auth: keyed}})
	cfg := client(0)
	cfg.Auth = startup.Auth{HasKey: true, Key: 5}
	for _, says := range []string{"wrong key", "wrong key", "wrong key (3 from "} {
		_, err := ownJoin(t, srv.addr, &OwnServer{}, cfg, nil)
		wantError(t, "client", err, startup.ErrFailed, says)
	}
	s, err := ownJoin(t, srv.addr, &OwnServer{}, keyedClient(0), nil)
	if err == nil {
		err = errors.Join(s.Finish(), <-srv.result)
	}
	if err != nil {
		t.Error(err)
	}
}

// attacker answers every connection with one more of the replies, and then passes on to a
// real server.
func attacker(t *testing.T, server string, replies ...string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ; n++ {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			in := bufio.NewReader(c)
			if b, _ := in.Peek(1); len(b) == 1 && b[0] == prefaceByte {
				_, _ = io.WriteString(c, replies[min(n, len(replies)-1)])
				hangUp(c)
				continue
			}
			s, err := net.Dial("tcp", server)
			if err != nil {
				c.Close()
				continue
			}
			wg.Go(func() {
				_, _ = io.Copy(s, in)
				closeWrite(s)
			})
			wg.Go(func() {
				_, _ = io.Copy(c, s)
				c.Close()
				s.Close()
			})
		}
	})
	t.Cleanup(func() { ln.Close(); wg.Wait() })
	return ln.Addr().String()
}

// TestServerThatDoesNotSpeakTLS: a client without certificates falls back to plain IMPI,
// with a warning; one that needs TLS does not, and says what to do.
func TestServerThatDoesNotSpeakTLS(t *testing.T) {
	old := string(wire.AppendFail(nil, startup.ErrProtocol.Error()+": STLS where AUTH should be"))
	for name, reply := range map[string]string{"closes": "", "answers": "AUTH what?", "is older": old} {
		t.Run(name, func(t *testing.T) {
			auth, cfg := keyed, keyedClient(0)
			if reply == "" { // which many connections can cause: the client does not send the key then
				auth, cfg = startup.Auth{None: true}, client(0)
				cfg.Auth = auth
			}
			srv := serveOwn(t, Config{Server: startup.ServerConfig{Clients: 1, Auth: auth}})
			addr := attacker(t, srv.addr, reply)
			if reply != "" {
				_, err := ownJoin(t, addr, &OwnServer{NeedTLS: true}, keyedClient(0), nil)
				wantError(t, "client", err, startup.ErrAuth, "server_foreign = true")
			}
			var log transcript.Writer
			s, err := ownJoin(t, addr, &OwnServer{}, cfg, &log)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(log.String(), "[WARN]") || !strings.Contains(log.String(), "does not speak TLS") {
				t.Errorf("no warning:\n%s", log.String())
			}
			if err := errors.Join(s.Finish(), <-srv.result); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDeafServerIsNotSpokenToInPlain: a client that needs TLS, or has a key, tries until
// its time is over.
func TestDeafServerIsNotSpokenToInPlain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deaf := func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() {
				defer far.Close()
				first := make([]byte, 1)
				if _, err := io.ReadFull(far, first); err != nil || first[0] != prefaceByte {
					t.Errorf("it is spoken to in plain: %q, %v", first, err)
				}
			}()
			return near, nil
		}
		for _, need := range []bool{true, false} {
			cfg := keyedClient(0)
			cfg.Limit = time.Minute
			var log transcript.Writer
			logger := hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Debug})
			_, _, err := Join(t.Context(), Settings{Server: "server:1", Dial: deaf, Own: &OwnServer{NeedTLS: need}, Logger: logger}, cfg)
			wantError(t, "client", err, startup.ErrTimeout, "if it is another MPI's, write server_foreign = true")
			if n := strings.Count(log.String(), "without an answer: trying again"); n != 1 {
				t.Errorf("the operator was told %d times:\n%s", n, log.String())
			}
		}
	})
}

// TestBusyServerOfOursIsAskedAgain: after a refusal for lack of room a client tries again,
// and does not fall back to plain IMPI.
func TestBusyServerOfOursIsAskedAgain(t *testing.T) {
	srv := serveOwn(t, Config{Server: startup.ServerConfig{Clients: 1, Auth: keyed}})
	hello := "\x16\x03\x03\x00\x04\x02\x00\x00\x08" + "FAIL, in the middle of it"
	busy := string(wire.AppendFail(nil, startup.ErrBusy.Error()+": 64 others"))
	foreign := "AUTH what?"
	var log transcript.Writer
	s, err := ownJoin(t, attacker(t, srv.addr, busy, hello, busy, hello, busy, foreign), &OwnServer{}, keyedClient(0), &log)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "[WARN]"); n != 1 || !strings.Contains(log.String(), "AUTH what?") {
		t.Errorf("it gave up TLS before it had to:\n%s", log.String())
	}
	if err := errors.Join(s.Finish(), <-srv.result); err != nil {
		t.Error(err)
	}
}

// TestCertificates: both sides must show one of the same CA, and say what is wrong.
func TestCertificates(t *testing.T) {
	ca, other := pkitest.Authority(t), pkitest.Authority(t)
	load := func(settings map[string]any) *identity.Identity {
		id, err := identity.Load(settings)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	alpha := load(pkitest.Site(t, "alpha", ca, ca, nil))
	beta := load(pkitest.Site(t, "beta", ca, ca, nil))
	stranger := load(pkitest.Site(t, "stranger", other, other, nil))
	choosy := load(pkitest.Site(t, "alpha", ca, ca, map[string]any{"peers": []string{"gamma"}}))
	for _, c := range []struct {
		name   string
		server Config
		own    OwnServer
		says   string // "": it joins
	}{
		{"both", Config{Identity: alpha}, OwnServer{Identity: beta, NeedTLS: true, Resume: 1e9}, ""},
		{"another CA", Config{Identity: alpha}, OwnServer{Identity: stranger, NeedTLS: true}, `the certificate of "alpha" was not signed by the CA in`},
		{"client without", Config{Identity: alpha}, OwnServer{}, "give this site one, with cert, key and ca"},
		{"server without", Config{}, OwnServer{Identity: beta, NeedTLS: true}, "start impi-server with -cert, -key and -ca, or write require_tls = false"},
		{"not among peers", Config{Identity: choosy}, OwnServer{Identity: beta, NeedTLS: true}, "not of a site that the peer's setting peers names"},
		{"server without, which is meant", Config{}, OwnServer{Identity: beta, Unverified: true}, ""},
		{"client without, which is meant", Config{Identity: alpha, Unverified: true}, OwnServer{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.server.Server = startup.ServerConfig{Clients: 1, Auth: keyed}
			srv := serveOwn(t, c.server)
			s, err := ownJoin(t, srv.addr, &c.own, keyedClient(0), nil)
			if c.says != "" {
				wantError(t, "client", err, startup.ErrAuth, c.says)
				if s, err = ownJoin(t, srv.addr, nil, keyedClient(0), nil); err != nil {
					t.Fatal(err)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(s.Finish(), <-srv.result); err != nil {
				t.Error(err)
			}
			if c.name == "both" && !strings.Contains(srv.log.String(), "certificate of beta") {
				t.Errorf("the server does not know its client:\n%s", srv.log.String())
			}
			if c.says != "" && c.server.Identity != nil && !strings.Contains(srv.log.String(), "[WARN]  client joined") {
				t.Errorf("a plain client at a server with certificates is no warning:\n%s", srv.log.String())
			}
		})
	}
}

// TestStrangerAsksForASession: a stranger that began with TLS, was evicted because of other
// connections, and then asks for a session that does not exist, leaves no state behind.
func TestStrangerAsksForASession(t *testing.T) {
	srv := serveOwn(t, Config{Server: startup.ServerConfig{Clients: 1, Auth: keyed}})
	nc, err := net.Dial("tcp", srv.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Write(preface[:]); err != nil {
		t.Fatal(err)
	}
	stranger := tls.Client(nc, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}, MinVersion: tls.VersionTLS13})
	if err := stranger.Handshake(); err != nil {
		t.Fatal(err)
	}
	hangUp := dialMany(t, 64, srv.addr, nil) // as many as have room at one address
	for srv.count(startup.EventRefused) == 0 {
		runtime.Gosched()
	}
	h := hello{flags: flagResume, session: resume.ResumableID{1}}
	if _, err := stranger.Write(h.append(nil)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.ReadAll(stranger)                              // its answer does not matter here
	more := dialMany(t, 8*wire.MaxClients+64, srv.addr, nil) // more than may be leaving
	s, err := ownJoin(t, srv.addr, &OwnServer{}, keyedClient(0), nil)
	if err == nil {
		err = errors.Join(s.Finish(), <-srv.result)
	}
	if err != nil {
		t.Error(err)
	}
	hangUp()
	more()
}
