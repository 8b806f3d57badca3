package pki

import (
	"bytes"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func authority(t *testing.T, validity time.Duration) *Authority {
	t.Helper()
	a, err := NewAuthority("job", now, validity)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func issued(t *testing.T, a *Authority, site string, validity time.Duration) *x509.Certificate {
	t.Helper()
	p, err := a.Issue(site, now, validity)
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParseCert(p.Cert)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A site's certificate is good for both sides of a connection, under its name.
func TestSitesAreVerified(t *testing.T) {
	a := authority(t, 24*time.Hour)
	c := issued(t, a, "alpha-1.east", time.Hour)
	roots := x509.NewCertPool()
	roots.AddCert(a.Cert())
	for _, use := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		for at, good := range map[time.Duration]bool{-time.Minute: true, 59 * time.Minute: true, 61 * time.Minute: false, -time.Hour: false} {
			_, err := c.Verify(x509.VerifyOptions{
				Roots: roots, CurrentTime: now.Add(at), DNSName: "alpha-1.east", KeyUsages: []x509.ExtKeyUsage{use}})
			if (err == nil) != good {
				t.Errorf("use %v, %v later: %v", use, at, err)
			}
		}
	}
	if _, err := c.Verify(x509.VerifyOptions{Roots: x509.NewCertPool(), CurrentTime: now}); err == nil {
		t.Error("anybody has signed it")
	}
}

// A site cannot sign, and an authority makes no authorities.
func TestSitesAreNoAuthorities(t *testing.T) {
	a := authority(t, time.Hour)
	if c := issued(t, a, "alpha", time.Hour); c.IsCA || c.KeyUsage&x509.KeyUsageCertSign != 0 {
		t.Errorf("a site is a CA: %v, %v", c.IsCA, c.KeyUsage)
	}
	if c := a.Cert(); !c.IsCA || !c.MaxPathLenZero {
		t.Errorf("the CA may have others below it: %+v", c.MaxPathLen)
	}
}

func TestNothingOutlivesItsAuthority(t *testing.T) {
	a := authority(t, time.Hour)
	if c := issued(t, a, "alpha", 100*time.Hour); !c.NotAfter.Equal(a.Cert().NotAfter) {
		t.Errorf("valid until %v, the CA until %v", c.NotAfter, a.Cert().NotAfter)
	}
}

func TestSerialsDiffer(t *testing.T) {
	a := authority(t, time.Hour)
	if x, y := issued(t, a, "alpha", time.Hour), issued(t, a, "alpha", time.Hour); x.SerialNumber.Cmp(y.SerialNumber) == 0 {
		t.Error("two certificates have one number")
	}
}

func TestLoad(t *testing.T) {
	a, other := authority(t, time.Hour), authority(t, time.Hour)
	b, err := Load(a.Pair())
	if err != nil {
		t.Fatal(err)
	}
	if c := issued(t, b, "alpha", time.Hour); c.CheckSignatureFrom(a.Cert()) != nil {
		t.Error("what was loaded signs otherwise")
	}
	site, err := a.Issue("alpha", now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]Pair{
		"Nothing":     {},
		"OthersKey":   {a.Pair().Cert, other.Pair().Key},
		"Site":        site,
		"Exchanged":   {a.Pair().Key, a.Pair().Cert},
		"BrokenBytes": {bytes.Replace(a.Pair().Cert, []byte("A"), []byte("B"), 1), a.Pair().Key},
		"NoKey":       {a.Pair().Cert, []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")},
	} {
		if _, err := Load(p); err == nil || name != "BrokenBytes" && !errors.Is(err, ErrPEM) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestValidName(t *testing.T) {
	for name, good := range map[string]bool{
		"alpha": true, "a.b-c_d9": true, "": false, "a b": false, "ä": false, ".a": false, "a.": false, "a/b": false,
		strings.Repeat("a", 63): true, strings.Repeat("a", 64): false,
	} {
		if ValidName(name) != good {
			t.Errorf("%q: %t", name, !good)
		}
	}
	if _, err := authority(t, time.Hour).Issue("a b", now, time.Hour); !errors.Is(err, ErrName) {
		t.Errorf("a name with a space: %v", err)
	}
}

func FuzzParseCert(f *testing.F) {
	a, err := NewAuthority("job", now, time.Hour)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(a.Pair().Cert)
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := ParseCert(b); (c == nil) == (err == nil) {
			t.Errorf("%v, %v", c, err)
		}
	})
}
