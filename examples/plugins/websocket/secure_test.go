package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// authority is a CA and the folder that its certificates are in.
type authority struct {
	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.make("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// make writes a certificate and its key; the first one signs itself.
func (a *authority) make(name string, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := c, key
	if a.cert != nil {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(a.dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return made, key
}

// site makes the settings of a site that the CA knows.
func (a *authority) site(name string) map[string]any {
	a.make(name, &x509.Certificate{DNSNames: []string{name}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}})
	return map[string]any{
		"cert": filepath.Join(a.dir, name+".pem"), "key": filepath.Join(a.dir, name+".key"), "ca": filepath.Join(a.dir, "ca.pem"),
	}
}

// The whole contract by wss, through an HTTP proxy.
func TestContractByTLSThroughProxy(t *testing.T) {
	ca, p := newAuthority(t), newProxy(t, "")
	alpha, beta := ca.site("alpha"), ca.site("beta")
	beta["proxy"] = p.url
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		return transporttest.Harness{Transport: configured(t, alpha), Dialler: configured(t, beta), Listen: here, Large: 8 << 20, Links: 50}
	})
	if p.tunnels.Load() < 50 {
		t.Errorf("only %d connections went through the proxy", p.tunnels.Load())
	}
}

func TestWhyATLSDialFails(t *testing.T) {
	ours, others := newAuthority(t), newAuthority(t)
	alpha := configured(t, ours.site("alpha"))
	ln, err := alpha.Listen(t.Context(), here)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if c := alpha.Capabilities(); !strings.HasPrefix(ln.Address(), "wss://127.0.0.1:") || !c.Has(transports.FeatureEncrypted) {
		t.Errorf("it listens at %s, with %v", ln.Address(), c.Features)
	}
	picky := ours.site("gamma")
	picky["peers"] = []string{"beta"}
	for what, c := range map[string]struct {
		set   map[string]any
		words string // empty: there is to be a link
	}{
		"of the job":        {ours.site("beta"), ""},
		"of another job":    {others.site("beta"), "CA"},
		"another peer":      {picky, "alpha"},
		"no certificate":    {nil, "certificate"},
		"not by TLS at all": {map[string]any{"address": strings.Replace(ln.Address(), "wss", "ws", 1)}, ""},
	} {
		t.Run(what, func(t *testing.T) {
			address := ln.Address()
			if a, ok := c.set["address"].(string); ok {
				address, c.set, c.words = a, nil, "answer"
			}
			_, err := dialFrom(t, configured(t, c.set), address)
			var te *transports.Error
			if c.words == "" && err != nil {
				t.Error(err)
			}
			if c.words != "" && (!errors.As(err, &te) || te.Code == transports.CodeInternal || !strings.Contains(te.Reason, c.words)) {
				t.Errorf("%v, want one with %q", err, c.words)
			}
		})
	}
}

func TestIdentityIsJudged(t *testing.T) {
	x := newTransport()
	given := transports.Defaults(x.Schema())
	given["cert"] = "/nonexistent/alpha.pem"
	err := x.Configure(given)
	for _, name := range []string{"cert", "key", "ca"} {
		if err == nil || !strings.Contains(err.Error(), name+": ") {
			t.Errorf("%s is not blamed: %v", name, err)
		}
	}
}
