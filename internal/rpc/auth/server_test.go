package auth

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/openimpi/impi/plugins/sdk/support/pki"
	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
	"github.com/openimpi/impi/plugins/sdk/transports/identity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	errDenied  = errors.New("denied")
	errVersion = errors.New("another version")
	kind       = Kind{Protocol: "test/1", Name: "impi test", Denied: errDenied, Version: errVersion}
	theKey     = Keys{Key: []byte("key")}
)

func serverOf(t *testing.T, cfg Config) *Server {
	t.Helper()
	if cfg.Kind == nil {
		cfg.Kind = &kind
	}
	cfg.Files = 3
	d, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// meets has a client connect to a server, and returns what each side finds.
func meets(t *testing.T, d *Server, client Keys) (ofClient, ofServer error) {
	t.Helper()
	near, far := net.Pipe()
	served := make(chan error, 1)
	go func() {
		c, err := d.Accept(far)
		if err == nil {
			_, err = c.Write([]byte("in"))
		}
		_ = far.Close()
		served <- err
	}()
	c, err := kind.Connect(t.Context(), near, client)
	if err == nil {
		var b [2]byte
		if _, err = io.ReadFull(c, b[:]); string(b[:]) != "in" {
			t.Errorf("after the proof came %q", b)
		}
	}
	_ = near.Close()
	return err, <-served
}

// TestKeys tries all pairs of what the two sides have.
func TestKeys(t *testing.T) {
	open, wrong, both := Keys{Open: true}, Keys{Key: []byte("kez")}, Keys{Open: true, Key: []byte("key")}
	for _, c := range []struct {
		server, client Keys
		in             bool
	}{
		{theKey, theKey, true}, {open, open, true}, {both, theKey, true}, {theKey, both, true}, {both, open, true},
		{open, both, true}, {theKey, wrong, false}, {theKey, open, false}, {open, theKey, false}, {both, wrong, false}, {theKey, Keys{}, false},
	} {
		client, server := meets(t, serverOf(t, Config{Keys: c.server}), c.client)
		if (client == nil) != c.in || (server == nil) != c.in {
			t.Errorf("server %v, client %v: %v, %v", c.server, c.client, client, server)
		}
		if !c.in && (!errors.Is(client, errDenied) || !errors.Is(server, errDenied)) {
			t.Errorf("server %v, client %v: %v, %v, which are not denials", c.server, c.client, client, server)
		}
	}
}

// TestCertificates tries all pairs of certificates of two ends that have the key. Each end says
// what it makes of the other's, and both stay connected to say so.
func TestCertificates(t *testing.T) {
	ours, theirs := pkitest.Authority(t), pkitest.Authority(t)
	load := func(ca, trusted *pki.Authority) *identity.Identity {
		t.Helper()
		id, err := identity.Load(pkitest.Site(t, "alpha", ca, trusted, nil))
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	good, foreign := load(ours, ours), load(theirs, theirs)
	late := good.At(func() time.Time { return time.Now().Add(2 * time.Hour) })
	const noOne, noCA, expired = "it has no certificate", "was not signed by the CA", "expired on"
	for _, c := range []struct {
		client, server     *identity.Identity
		ofClient, ofServer string // what each says of the other
	}{
		{nil, nil, "", ""}, {good, good, "", ""}, {good, nil, noOne, ""}, {nil, good, "", noOne},
		{good, foreign, noCA, noCA}, {late, good, expired, ""}, {good, late, "", expired},
	} {
		d := serverOf(t, Config{Keys: Keys{Key: theKey.Key, Identity: c.server}})
		near, far := net.Pipe()
		served := make(chan *Conn, 1)
		go func() {
			s, err := d.Accept(far)
			if err != nil {
				t.Error(err)
			}
			served <- s
		}()
		x, err := kind.Connect(t.Context(), near, Keys{Key: theKey.Key, Identity: c.client})
		if err != nil {
			t.Fatal(err)
		}
		for side, says := range map[string]struct {
			refused error
			want    string
		}{"client": {x.Refused, c.ofClient}, "server": {(<-served).Refused, c.ofServer}} {
			if says.want == "" && says.refused != nil || says.want != "" && (!errors.Is(says.refused, identity.ErrPeer) || !strings.Contains(says.refused.Error(), says.want)) {
				t.Errorf("the %s says %v, not %q", side, says.refused, says.want)
			}
		}
		_, _ = near.Close(), far.Close()
	}
	if client, server := meets(t, serverOf(t, Config{Keys: Keys{Key: []byte("kez"), Identity: good}}), Keys{Key: theKey.Key, Identity: good}); !errors.Is(client, errDenied) || !errors.Is(server, errDenied) {
		t.Errorf("good certificates and another key: %v, %v", client, server)
	}
}

// TestNobodyInBetween has somebody without the key relay what two sides with the key say,
// over two TLS connections of its own.
func TestNobodyInBetween(t *testing.T) {
	client, relayNear := net.Pipe()
	relayFar, server := net.Pipe()
	done := make(chan error, 2)
	go func() {
		_, err := serverOf(t, Config{Keys: theKey}).Accept(server)
		_ = server.Close()
		done <- err
	}()
	go func() {
		defer func() { done <- nil }()
		cfg, err := kind.serverTLS(nil)
		if err != nil {
			return
		}
		near, far := tls.Server(relayNear, cfg), tls.Client(relayFar, kind.clientTLS(nil))
		copied := make(chan struct{})
		go func() { defer close(copied); _, _ = io.Copy(far, near); _ = relayFar.Close() }()
		_, _ = io.Copy(near, far)
		_ = relayNear.Close()
		<-copied
	}()
	_, err := kind.Connect(t.Context(), client, theKey)
	_ = client.Close()
	if !errors.Is(err, errDenied) {
		t.Errorf("in between: %v", err)
	}
	for range 2 {
		if err := <-done; err != nil && !errors.Is(err, errDenied) {
			t.Error(err)
		}
	}
}

// TestServerThatHasNotTheKey: a client with a key believes no server that lets it in
// without a proof that it has the key too.
func TestServerThatHasNotTheKey(t *testing.T) {
	secret := []byte("secret")
	for name, answer := range map[string]verdict{
		"asks for none":   {true, ""},
		"with no proof":   {true, "I have it"},
		"with the wrong":  {true, string(kind.proof([]byte("kez"), secret, "server"))},
		"sends ours back": {true, string(kind.hello(theKey, secret)[1:])},
		"of another":      {true, string(kind.proof(theKey.Key, []byte("other"), "server"))},
		"turns us away":   {false, "no"},
	} {
		if err := kind.believe(theKey, answer, secret); !errors.Is(err, errDenied) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := kind.believe(theKey, kind.judge(theKey, kind.hello(theKey, secret), secret), secret); err != nil {
		t.Error(err)
	}
	other := Kind{Name: "another service", Denied: errDenied}
	if v := kind.judge(theKey, other.hello(theKey, secret), secret); v.granted {
		t.Error("a proof for another service is taken")
	}
}

// TestAnotherVersionIsRefused: the error of a client whose server speaks another version.
func TestAnotherVersionIsRefused(t *testing.T) {
	next := kind
	next.Protocol = "test/2"
	client, _ := meets(t, serverOf(t, Config{Kind: &next, Keys: theKey}), theKey)
	if !errors.Is(client, errVersion) {
		t.Error(client)
	}
}

// TestSilence: clients that say nothing are dropped in time, and too many of them make room
// for others.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := serverOf(t, Config{Keys: theKey, Greet: 7 * time.Second})
		var near []net.Conn
		begin := time.Now()
		for range 3 * MaxUnknown {
			a, b := net.Pipe()
			near = append(near, a)
			go func() {
				_, _ = d.Accept(b)
				_ = b.Close()
			}()
			synctest.Wait()
		}
		if n := d.Unknown(); n != MaxUnknown { // a pipe has no address
			t.Errorf("%d wait", n)
		}
		if client, server := meets(t, d, theKey); client != nil || server != nil {
			t.Error(client, server)
		}
		_, _ = near[len(near)-1].Read(make([]byte, 1))
		synctest.Wait()
		if took := time.Since(begin); took != 7*time.Second || d.Unknown() != 0 {
			t.Errorf("the last one left after %v; %d wait", took, d.Unknown())
		}
	})
}

// TestEnterEndsWithItsContext: a server that says nothing holds up a client no longer than
// its context.
func TestEnterEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		near, far := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, far) }()
		begin := time.Now()
		_, err := kind.Connect(ctx, near, theKey)
		if took := time.Since(begin); err == nil || took != 3*time.Second {
			t.Errorf("%v after %v", err, took)
		}
		_ = near.Close()
		_ = far.Close()
	})
}

// TestClosedServer: a closed server accepts nobody, and lets nobody wait.
func TestClosedServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := serverOf(t, Config{Keys: theKey})
		near, far := net.Pipe()
		left := make(chan error)
		go func() { _, err := d.Accept(far); left <- err }()
		synctest.Wait()
		d.Close()
		if err := <-left; err == nil {
			t.Error("accepted by a closed server")
		}
		if _, err := d.Accept(far); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		_ = near.Close()
	})
}
