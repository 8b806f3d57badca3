package tcp_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
	"github.com/openimpi/impi/transports/tcp"
)

var withTLS = map[string]any{"tls": true}

func TestSuiteTLS(t *testing.T) {
	ca := pkitest.Authority(t)
	alpha := configured(t, pkitest.Site(t, "alpha", ca, ca, withTLS))
	beta := configured(t, pkitest.Site(t, "beta", ca, ca, withTLS))
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		// The suite configures with the defaults, which have no TLS.
		return transporttest.Harness{
			Transport: keeps{alpha}, Dialler: keeps{beta}, Large: 16 << 20,
			Listen: transports.ListenSpec{Host: "127.0.0.2"}, From: "127.0.0.3",
		}
	})
}

// keeps is a transport that cannot be configured any more.
type keeps struct{ *tcp.Transport }

func (keeps) Configure(map[string]any) error { return nil }

func TestCapabilities(t *testing.T) {
	ca := pkitest.Authority(t)
	for name, c := range map[string]struct {
		settings map[string]any
		plane    transports.DataPlane
		has, not []transports.Feature
	}{
		"Plain": {nil, transports.PlaneFD, []transports.Feature{transports.FeatureIPChannelIfAsked},
			[]transports.Feature{transports.FeatureIPChannel, transports.FeatureEncrypted, transports.FeaturePeerAuth}},
		"OneStream": {map[string]any{"streams": 1.0}, transports.PlaneFD, []transports.Feature{transports.FeatureIPChannel},
			[]transports.Feature{transports.FeatureIPChannelIfAsked}},
		"TLS": {pkitest.Site(t, "alpha", ca, ca, withTLS), transports.PlaneRing,
			[]transports.Feature{transports.FeatureEncrypted, transports.FeaturePeerAuth}, []transports.Feature{transports.FeatureIPChannel, transports.FeatureIPChannelIfAsked}},
		"SeveralAddresses": {map[string]any{"also": []string{"::1"}}, transports.PlaneFD, nil, []transports.Feature{transports.FeatureIPChannel, transports.FeatureIPChannelIfAsked}},
	} {
		got := configured(t, c.settings).Capabilities()
		if got.DataPlanes[0] != c.plane {
			t.Errorf("%s: data planes %v", name, got.DataPlanes)
		}
		for _, f := range c.has {
			if !got.Has(f) {
				t.Errorf("%s: no %s", name, f)
			}
		}
		for _, f := range c.not {
			if got.Has(f) {
				t.Errorf("%s: has %s", name, f)
			}
		}
	}
}

func TestTLSTurnsStrangersAway(t *testing.T) {
	ca, other := pkitest.Authority(t), pkitest.Authority(t)
	alpha := configured(t, pkitest.Site(t, "alpha", ca, ca, map[string]any{"tls": true, "peers": []string{"alpha", "beta"}}))
	for name, c := range map[string]struct {
		settings  map[string]any
		near, far string
	}{
		"OtherAuthority": {pkitest.Site(t, "beta", other, other, withTLS), `"alpha" was not signed by the CA in `, "refuses our certificate"},
		"OtherName":      {pkitest.Site(t, "gamma", ca, ca, withTLS), "peers", `"gamma", and the setting peers allows`},
	} {
		t.Run(name, func(t *testing.T) {
			ln := listen(t, alpha, transports.ListenSpec{Host: "127.0.0.1"})
			told := make(chan error, 1)
			go func() {
				_, err := ln.Accept(t.Context())
				told <- err
			}()
			_, err := configured(t, c.settings).Dial(t.Context(), transports.DialSpec{Address: ln.Address()})
			wantAuth(t, err, c.near)
			wantAuth(t, <-told, c.far)
		})
	}
}

func wantAuth(t *testing.T, err error, text string) {
	t.Helper()
	var te *transports.Error
	if !errors.As(err, &te) || te.Code != transports.CodeAuth || !strings.Contains(te.Reason, text) {
		t.Errorf("it is said: %v, not %s", err, text)
	}
}

// If only one side has TLS, that side fails with an error that says so.
func TestTLSOnOneSideOnly(t *testing.T) {
	ca := pkitest.Authority(t)
	secure, plain := configured(t, pkitest.Site(t, "alpha", ca, ca, withTLS)), tcp.New()
	t.Run("Listener", func(t *testing.T) {
		ln := listen(t, secure, transports.ListenSpec{Host: "127.0.0.1"})
		_, err := plain.Dial(t.Context(), transports.DialSpec{Address: ln.Address()})
		var te *transports.Error
		if !errors.As(err, &te) || te.Code != transports.CodeRefused {
			t.Errorf("the dialler hears: %v", err)
		}
		_, err = ln.Accept(t.Context())
		wantAuth(t, err, "does not speak TLS")
	})
	t.Run("Dialler", func(t *testing.T) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		go func() {
			c, err := ln.Accept()
			if err == nil {
				_, _ = io.WriteString(c, "SSH-2.0-other\r\n")
				c.Close()
			}
		}()
		_, err = secure.Dial(t.Context(), transports.DialSpec{Address: ln.Addr().String()})
		var te *transports.Error
		if !errors.As(err, &te) || te.Code != transports.CodeAuth && te.Code != transports.CodeProtocol && te.Code != transports.CodeRefused {
			t.Errorf("it is said: %v", err)
		}
	})
}

// A silent peer does not hold up others.
func TestSilentPeerHoldsNobodyUp(t *testing.T) {
	ca := pkitest.Authority(t)
	secure := configured(t, pkitest.Site(t, "alpha", ca, ca, withTLS))
	ln := listen(t, secure, transports.ListenSpec{Host: "127.0.0.1"})
	for range 200 { // more than there may be at one time
		c, err := net.Dial("tcp", place(ln))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	l, err := secure.Dial(t.Context(), transports.DialSpec{Address: ln.Address()})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for {
		a, err := ln.Accept(t.Context())
		var te *transports.Error
		if errors.As(err, &te) && te.Retryable {
			continue // a silent one was evicted
		}
		if err != nil {
			t.Fatal(err)
		}
		a.Close()
		return
	}
}

func TestTLSSettings(t *testing.T) {
	ca := pkitest.Authority(t)
	good := pkitest.Site(t, "alpha", ca, ca, nil)
	if err := tcp.New().Configure(map[string]any{"cert": "/nowhere"}); err != nil {
		t.Errorf("files are looked for without tls: %v", err)
	}
	good["tls"], good["key"] = true, ""
	var fault *transports.SettingError
	if err := tcp.New().Configure(good); !errors.As(err, &fault) || fault.Name != "key" {
		t.Errorf("tls without a key: %v", err)
	}
}
