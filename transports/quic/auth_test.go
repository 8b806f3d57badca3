package quic_test

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"testing"
	"time"

	quicgo "github.com/quic-go/quic-go"

	"github.com/openimpi/impi/plugins/sdk/support/pki"
	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/transports/quic"
)

// turnedAway expects that authentication fails on both sides: the dialler's error has the
// text near, the acceptor's the text far.
func turnedAway(t *testing.T, alpha, beta *quic.Transport, near, far string) {
	t.Helper()
	ln := listen(t, alpha, "127.0.0.1")
	l, err := beta.Dial(t.Context(), transports.DialSpec{Address: ln.Address()})
	if err == nil {
		l.Close()
		t.Fatal("a link was made")
	}
	authError(t, err, "dial", near)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	_, err = ln.Accept(ctx)
	authError(t, err, "accept", far)
	var te *transports.Error
	if errors.As(err, &te) && !te.Retryable {
		t.Errorf("a stranger ends the listener: %v", err)
	}
}

func authError(t *testing.T, err error, op, text string) {
	t.Helper()
	var te *transports.Error
	if !errors.As(err, &te) || te.Code != transports.CodeAuth || te.Op != op || te.Transport != "quic" {
		t.Fatalf("%s: no *transports.Error with code auth: %v", op, err)
	}
	if !strings.Contains(te.Reason, text) {
		t.Errorf("%s: the reason does not have %q: %s", op, text, te.Reason)
	}
}

func TestOtherAuthority(t *testing.T) {
	ours, theirs := pkitest.Authority(t), pkitest.Authority(t)
	t.Run("OfTheDialler", func(t *testing.T) {
		// The dialler trusts the listener, but not the other way round.
		alpha := started(t, pkitest.Site(t, "alpha", ours, ours, nil))
		beta := started(t, both(t, pkitest.Site(t, "beta", theirs, theirs, nil), ours, theirs))
		turnedAway(t, alpha, beta, "does not trust our CA", `"beta" was not signed by the CA in `)
	})
	t.Run("OfTheListener", func(t *testing.T) {
		alpha := started(t, pkitest.Site(t, "alpha", theirs, theirs, nil))
		beta := started(t, pkitest.Site(t, "beta", ours, ours, nil))
		turnedAway(t, alpha, beta, `"alpha" was not signed by the CA in `, "refuses our certificate")
	})
}

// both makes a site trust two authorities.
func both(t *testing.T, settings map[string]any, a, b *pki.Authority) map[string]any {
	t.Helper()
	settings["ca"] = pkitest.Write(t, append(append([]byte(nil), a.Pair().Cert...), b.Pair().Cert...))
	return settings
}

// Configure refuses what has expired already; this expires afterwards.
func TestExpiredLater(t *testing.T) {
	ca := pkitest.Authority(t)
	for _, c := range []struct{ late, near, far string }{
		{"beta", "refuses our certificate, which expired on", `"beta" expired on`},
		{"alpha", `"alpha" expired on`, "which expired on"},
	} {
		t.Run(c.late, func(t *testing.T) {
			sites := map[string]*quic.Transport{}
			for _, name := range []string{"alpha", "beta"} {
				sites[name] = started(t, pkitest.Site(t, name, ca, ca, nil))
				if name != c.late {
					quic.SetClock(sites[name], func() time.Time { return time.Now().Add(30 * time.Minute) })
					continue
				}
				pair, err := ca.Issue(name, time.Now(), 10*time.Minute)
				if err != nil {
					t.Fatal(err)
				}
				sites[name] = started(t, pkitest.Files(t, pair, ca, nil))
				quic.SetClock(sites[name], func() time.Time { return time.Now().Add(30 * time.Minute) })
			}
			turnedAway(t, sites["alpha"], sites["beta"], c.near, c.far)
		})
	}
}

// stranger is a TLS configuration of a program that is none of our transports.
func stranger(t *testing.T, ca *pki.Authority, protocol string, withCert bool) *tls.Config {
	t.Helper()
	c := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}
	if withCert {
		pair, err := ca.Issue("stranger", time.Now(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		own, err := tls.X509KeyPair(pair.Cert, pair.Key)
		if err != nil {
			t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{own}
	}
	return c
}

func TestStrangersThatDial(t *testing.T) {
	ca := pkitest.Authority(t)
	for name, c := range map[string]struct {
		protocol string
		withCert bool
		text     string
	}{
		"OtherProtocol": {"h3", true, "speaks another protocol"},
		"NoCertificate": {"impi/1", false, "showed no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			ln := listen(t, started(t, pkitest.Site(t, "alpha", ca, ca, nil)), "127.0.0.1")
			qc, err := quicgo.DialAddr(t.Context(), ln.Address(), stranger(t, ca, c.protocol, c.withCert), nil)
			if err == nil { // TLS 1.3: the client learns it later
				<-qc.Context().Done()
			}
			_, err = ln.Accept(t.Context())
			authError(t, err, "accept", c.text)
			join(t, started(t, pkitest.Site(t, "beta", ca, ca, nil)), ln, ln.Address())
		})
	}
}

func TestStrangersThatListen(t *testing.T) {
	ca := pkitest.Authority(t)
	ln, err := quicgo.ListenAddr("127.0.0.1:0", stranger(t, ca, "h3", true), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, err = started(t, pkitest.Site(t, "alpha", ca, ca, nil)).Dial(t.Context(), transports.DialSpec{Address: ln.Addr().String()})
	authError(t, err, "dial", "speaks another protocol")
}

// A peer that has the right certificate and breaks the protocol loses its
// connection, and the listener goes on.
func TestControlStreamOfAnotherVersion(t *testing.T) {
	ca := pkitest.Authority(t)
	ln := listen(t, started(t, pkitest.Site(t, "alpha", ca, ca, nil)), "127.0.0.1")
	qc, err := quicgo.DialAddr(t.Context(), ln.Address(), stranger(t, ca, "impi/1", true), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := qc.OpenStream()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write([]byte{9}); err != nil {
		t.Fatal(err)
	}
	<-qc.Context().Done()
	var ae *quicgo.ApplicationError
	if !errors.As(context.Cause(qc.Context()), &ae) || !ae.Remote || !strings.Contains(ae.ErrorMessage, "version 9") {
		t.Errorf("it is told: %v", context.Cause(qc.Context()))
	}
	join(t, started(t, pkitest.Site(t, "beta", ca, ca, nil)), ln, ln.Address())
}

func TestPeersByName(t *testing.T) {
	ca := pkitest.Authority(t)
	open := pkitest.Site(t, "gamma", ca, ca, nil)
	strict := pkitest.Site(t, "alpha", ca, ca, map[string]any{"peers": []string{"beta", "delta"}})
	t.Run("OfTheDialler", func(t *testing.T) {
		turnedAway(t, started(t, strict), started(t, open), "peers", `"gamma", and the setting peers allows beta, delta only`)
	})
	t.Run("OfTheListener", func(t *testing.T) {
		turnedAway(t, started(t, open), started(t, strict), `"gamma", and the setting peers allows beta, delta only`, "peers")
	})
	t.Run("Allowed", func(t *testing.T) {
		ln := listen(t, started(t, strict), "127.0.0.1")
		join(t, started(t, pkitest.Site(t, "delta", ca, ca, nil)), ln, ln.Address())
	})
}

func TestSettingsJudgeTheFiles(t *testing.T) {
	ca, other := pkitest.Authority(t), pkitest.Authority(t)
	good := pkitest.Site(t, "alpha", ca, ca, nil)
	old, err := ca.Issue("alpha", time.Now().Add(-2*time.Hour), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change  map[string]any
		setting string
		text    string
	}{
		"NoFile":     {map[string]any{"cert": "/nowhere.pem"}, "cert", "there is no file /nowhere.pem"},
		"Nothing":    {map[string]any{"ca": ""}, "ca", "no file is given"},
		"Folder":     {map[string]any{"key": t.TempDir()}, "key", "it is a folder"},
		"NoPEM":      {map[string]any{"cert": pkitest.Write(t, []byte("hello"))}, "cert", "does not begin with a certificate"},
		"EmptyCA":    {map[string]any{"ca": pkitest.Write(t, nil)}, "ca", "no certificate"},
		"SiteAsCA":   {map[string]any{"ca": good["cert"]}, "ca", "which is no CA"},
		"OtherCA":    {map[string]any{"ca": pkitest.Write(t, other.Pair().Cert)}, "cert", "was not signed by the CA"},
		"OthersKey":  {map[string]any{"key": pkitest.Write(t, ca.Pair().Key)}, "key", "is not the key of the certificate"},
		"Expired":    {map[string]any{"cert": pkitest.Write(t, old.Cert), "key": pkitest.Write(t, old.Key)}, "cert", "expired on"},
		"Authority":  {map[string]any{"cert": pkitest.Write(t, ca.Pair().Cert), "key": pkitest.Write(t, ca.Pair().Key)}, "cert", "the certificate of a CA"},
		"Lanes":      {map[string]any{"lanes": 0.0}, "lanes", "not possible"},
		"Window":     {map[string]any{"window": 1.0}, "window", "not possible"},
		"Idle":       {map[string]any{"idle_timeout": 4.0, "keepalive": 3.0}, "idle_timeout", "less than twice"},
		"Keepalive":  {map[string]any{"keepalive": 0.0}, "keepalive", "not possible"},
		"Bind":       {map[string]any{"bind": "localhost"}, "bind", "not an IP address"},
		"Ports":      {map[string]any{"port_range": "9-8"}, "port_range", "not a range"},
		"Readable":   {map[string]any{"key": readable(t, good["key"].(string))}, "key", "its mode is 0644"},
		"UDP buffer": {map[string]any{"udp_buffer": 0.0}, "udp_buffer", "not possible"},
	} {
		t.Run(name, func(t *testing.T) {
			given := map[string]any{}
			for k, v := range good {
				given[k] = v
			}
			for k, v := range c.change {
				given[k] = v
			}
			var fault *transports.SettingError
			err := quic.New().Configure(given)
			if !errors.As(err, &fault) || fault.Name != c.setting || !strings.Contains(fault.Problem, c.text) || fault.Remedy == "" {
				t.Errorf("it is said: %v", err)
			}
		})
	}
}
