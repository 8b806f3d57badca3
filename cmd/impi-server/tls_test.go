package main

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/rendezvous"
	"github.com/openimpi/impi/internal/rendezvous/relaytest"
	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
)

// TestCertificatesOfTheServer: a site with a certificate of the same CA joins, and its
// connection is resumed; plain IMPI is turned away where -require-tls is given.
func TestCertificatesOfTheServer(t *testing.T) {
	ca := pkitest.Authority(t)
	files := pkitest.Site(t, "server", ca, ca, nil)
	p := start(t, []string{envKey + "=77"}, "-clients", "1", "-host", "127.0.0.1", "-require-tls",
		"-cert", files["cert"].(string), "-key", files["key"].(string), "-ca", files["ca"].(string))
	auth := startup.Auth{HasKey: true, Key: 77}
	if _, err := join(t, p.address, auth); !errors.Is(err, startup.ErrFailed) || !strings.Contains(err.Error(), "accepts only TLS") {
		t.Errorf("plain: %v", err)
	}
	id, err := rendezvous.LoadIdentity(pkitest.Site(t, "alpha", ca, ca, nil), "/")
	if err != nil {
		t.Fatal(err)
	}
	r := relaytest.New(t, p.address, nil)
	host := wire.HostIDFrom(netip.MustParseAddr("127.0.0.1"), wire.IPv4Compatible)
	s, _, err := rendezvous.Join(t.Context(), rendezvous.Settings{
		Server: r.Addr(), Own: &rendezvous.OwnServer{Identity: id, NeedTLS: true, Resume: time.Minute},
	}, startup.ClientConfig{
		Auth: auth, Params: startup.DefaultParams(),
		Hosts: []startup.HostConfig{{Address: host, Port: 5000, Procs: []startup.ProcConfig{{ID: wire.Proc{Host: host, PID: 1}}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Cut()
	if err := s.Finish(); err != nil {
		t.Error(err)
	}
	if code := p.end(t); code != exitOK || !strings.Contains(p.stderr.String(), "certificate of alpha") {
		t.Errorf("status %d\n%s", code, p.stderr.String())
	}
}
