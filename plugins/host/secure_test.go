package host

import (
	"errors"
	"testing"

	"github.com/openimpi/impi/internal/soak"
	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// The contract for transports whose links live in their plugins' processes.
func TestConformanceSecure(t *testing.T) {
	ca := pkitest.Authority(t)
	// As long as the suite waits itself: a peer that a busy machine does not run for a
	// while is not lost.
	patient := map[string]any{"silence": 60.0, "handshake_timeout": 60.0}
	for _, c := range []struct {
		name  string
		plane transports.DataPlane
		more  map[string]any
	}{
		{"quic", transports.PlaneRing, patient}, {"quic", transports.PlaneStream, patient},
		{"tcp", transports.PlaneRing, map[string]any{"tls": true, "silence": 60.0}},
	} {
		t.Run(c.name+"/"+string(c.plane), func(t *testing.T) {
			if c.name == "quic" {
				soak.SkipUnlessSoak(t, "make test has tcp by rings and streams, and quic in transports/quic")
			}
			var sites [2]transports.Transport
			for i, name := range []string{"alpha", "beta"} {
				w := builtin(c.name, "")
				w.Settings = pkitest.Site(t, name, ca, ca, c.more)
				sites[i] = configured{w.start(t).Pinned([]transports.DataPlane{c.plane})}
			}
			transporttest.Run(t, func(t *testing.T) transporttest.Harness {
				return transporttest.Harness{
					Transport: sites[0], Dialler: sites[1], Large: suiteLarge(), Links: suiteLinks(),
					Listen: transports.ListenSpec{Host: "127.0.0.1", Dir: privateDir(t), Name: "suite"},
				}
			})
		})
	}
}

// configured is a transport that keeps its settings: the suite's would have no
// certificates.
type configured struct{ transports.Transport }

func (configured) Configure(map[string]any) error { return nil }

// Both plugins say why a site was refused.
func TestPluginsExplainStrangers(t *testing.T) {
	ours, theirs := pkitest.Authority(t), pkitest.Authority(t)
	for name, more := range map[string]map[string]any{"quic": nil, "tcp": {"tls": true}} {
		t.Run(name, func(t *testing.T) {
			near, far := builtin(name, ""), builtin(name, "")
			near.Settings = pkitest.Site(t, "alpha", ours, ours, more)
			far.Settings = pkitest.Site(t, "beta", theirs, theirs, more)
			ln, err := near.start(t).Transport().Listen(soon(t), transports.ListenSpec{Host: "127.0.0.1"})
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			_, err = far.start(t).Transport().Dial(soon(t), transports.DialSpec{Address: ln.Address()})
			var te *transports.Error
			if !errors.As(err, &te) || te.Code != transports.CodeAuth {
				t.Errorf("it is said: %v", err)
			}
			near.log.wait(t, "refuses our certificate")
		})
	}
}
