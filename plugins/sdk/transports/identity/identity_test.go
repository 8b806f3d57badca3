package identity

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

func load(t *testing.T, given map[string]any) *Identity {
	t.Helper()
	id, err := Load(given)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// meet makes a handshake and returns each side's error.
func meet(t *testing.T, client, server *tls.Config) (dialler, listener error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	done := make(chan error, 1)
	go func() {
		c, err := ln.Accept()
		if err != nil {
			done <- err
			return
		}
		defer c.Close()
		s := tls.Server(c, server)
		if err = s.Handshake(); err == nil {
			_, err = s.Write([]byte{1})
		}
		done <- err
	}()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	x := tls.Client(c, client)
	if err = x.Handshake(); err == nil {
		_, err = x.Read(make([]byte, 1)) // TLS 1.3: only now is our certificate judged
	}
	if err != nil {
		c.Close()
	}
	return err, <-done
}

func TestExplanations(t *testing.T) {
	ca, other := pkitest.Authority(t), pkitest.Authority(t)
	alpha := load(t, pkitest.Site(t, "alpha", ca, ca, nil))
	beta := load(t, pkitest.Site(t, "beta", ca, ca, nil))
	stranger := load(t, pkitest.Site(t, "beta", other, other, nil))
	trusting := load(t, func() map[string]any {
		s := pkitest.Site(t, "beta", other, other, nil)
		s["ca"] = pkitest.Write(t, append(append([]byte(nil), ca.Pair().Cert...), other.Pair().Cert...))
		return s
	}())
	picky := load(t, pkitest.Site(t, "alpha", ca, ca, map[string]any{"peers": []string{"alpha"}}))
	later := func() time.Time { return time.Now().Add(2 * time.Hour) }
	earlier := func() time.Time { return time.Now().Add(-2 * time.Hour) }
	bare := beta.Client("p")
	bare.Certificates = nil
	for name, c := range map[string]struct {
		client, server *tls.Config
		near, far      string
	}{
		"Good":          {beta.Client("p"), alpha.Server("p"), "", ""},
		"ServerUnknown": {stranger.Client("p"), alpha.Server("p"), `"alpha" was not signed by the CA in`, "refuses our certificate"},
		"ClientUnknown": {trusting.Client("p"), alpha.Server("p"), "does not trust our CA", `"beta" was not signed by the CA in`},
		"Name":          {beta.Client("p"), picky.Server("p"), "setting peers", `"beta", and the setting peers allows alpha only`},
		"ServerExpired": {beta.At(later).Client("p"), alpha.Server("p"), ": check the clock of " + machine(), "refuses our certificate"},
		"ClientExpired": {beta.Client("p"), alpha.At(later).Server("p"), "as expired or not valid yet", `"beta" expired on`},
		"ClockBehind":   {beta.At(earlier).Client("p"), alpha.Server("p"), ": check the clock of " + machine(), "refuses our certificate"},
		"NoCertificate": {bare, alpha.Server("p"), "wants a certificate of us", "showed no certificate"},
		"Protocol":      {beta.Client("p"), alpha.Server("q"), "speaks another protocol", "speaks another protocol"},
		"OldTLS":        {&tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}, alpha.Server("p"), "does not speak TLS 1.3", ""},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := meet(t, c.client, c.server)
			if got := beta.Explain(near); !strings.Contains(got, c.near) || (near == nil) != (c.near == "") {
				t.Errorf("the dialler is told %q by %v", got, near)
			}
			listener := alpha
			if name == "ClientExpired" {
				listener = alpha.At(later)
			}
			if got := listener.Explain(far); !strings.Contains(got, c.far) || c.far == "" && got != "" {
				t.Errorf("the listener is told %q by %v", got, far)
			}
		})
	}
}

func TestExplainIsSilentOnOtherFailures(t *testing.T) {
	id := load(t, func() map[string]any { ca := pkitest.Authority(t); return pkitest.Site(t, "a", ca, ca, nil) }())
	for _, err := range []error{nil, errors.New("no route"), net.ErrClosed, fmt.Errorf("x: %w", os.ErrDeadlineExceeded)} {
		if text := id.Explain(err); text != "" {
			t.Errorf("%v: %q", err, text)
		}
	}
	if id.ExplainAlert(80) != "" {
		t.Error("an internal error of the peer is about who we are")
	}
}

// A site whose certificate was refused because it has expired meanwhile finds that out
// itself.
func TestRefusedAndExpired(t *testing.T) {
	ca := pkitest.Authority(t)
	id := load(t, pkitest.Site(t, "alpha", ca, ca, nil)).At(func() time.Time { return time.Now().Add(2 * time.Hour) })
	if text := id.ExplainAlert(alertBadCertificate); !strings.Contains(text, "which expired on") {
		t.Errorf("it is said: %s", text)
	}
}

func TestSettings(t *testing.T) {
	for _, required := range []bool{true, false} {
		for _, s := range Settings(required) {
			isFile := s.Type == transports.TypePath
			if s.Required != (required && isFile) || (s.Default == nil) != s.Required {
				t.Errorf("%t: %+v", required, s)
			}
		}
	}
}

// All faults are reported together.
func TestLoadReportsAll(t *testing.T) {
	_, err := Load(map[string]any{"cert": "/nowhere/a", "ca": pkitest.Write(t, []byte("x"))})
	for _, name := range []string{"cert: ", "key: ", "ca: "} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not among: %v", name, err)
		}
	}
}

// The secret belongs to the key.
func TestName(t *testing.T) {
	ca := pkitest.Authority(t)
	id := load(t, pkitest.Site(t, "alpha", ca, ca, nil))
	if id.Name() != "alpha" || time.Until(id.Expires()) > time.Hour {
		t.Errorf("%s, %v", id.Name(), id.Expires())
	}
	again := load(t, pkitest.Site(t, "alpha", ca, ca, nil))
	if string(id.Secret()) == string(again.Secret()) || len(id.Secret()) != 32 {
		t.Error("the secret is not that of the key")
	}
}

// TestWithOwn: a site whose setting peers does not name it accepts its own certificate among its
// hosts.
func TestWithOwn(t *testing.T) {
	ca := pkitest.Authority(t)
	alpha := load(t, pkitest.Site(t, "alpha", ca, ca, map[string]any{"peers": []string{"beta"}}))
	beta, gamma := load(t, pkitest.Site(t, "beta", ca, ca, nil)), load(t, pkitest.Site(t, "gamma", ca, ca, nil))
	for _, c := range []struct {
		by, other *Identity
		accepts   bool
	}{{alpha, alpha, false}, {alpha, beta, true}, {alpha.WithOwn(), alpha, true}, {alpha.WithOwn(), beta, true}, {alpha.WithOwn(), gamma, false}, {beta.WithOwn(), gamma, true}} {
		if err := c.by.Accepts(c.other); (err == nil) != c.accepts {
			t.Errorf("%s of %s: %v", c.by.Name(), c.other.Name(), err)
		}
	}
}

// TestCAThatIsNotValidYet: the dates that are shown are those of the certificate that is not valid.
func TestCAThatIsNotValidYet(t *testing.T) {
	ca := pkitest.Authority(t)
	old, err := ca.Issue("alpha", time.Now().Add(-time.Hour), 2*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	id := load(t, map[string]any{"cert": pkitest.Write(t, old.Cert), "key": pkitest.Write(t, old.Key), "ca": pkitest.Write(t, ca.Pair().Cert)})
	id = id.At(func() time.Time { return time.Now().Add(-30 * time.Minute) })
	if err := id.Accepts(id); err == nil || !strings.Contains(err.Error(), `the certificate of the CA "test" is valid from `) || !strings.Contains(err.Error(), "check the clock of "+machine()) {
		t.Error(err)
	}
}
