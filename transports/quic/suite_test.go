package quic_test

import (
	"testing"

	"github.com/openimpi/impi/internal/soak"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
	"github.com/openimpi/impi/transports/quic"
)

func TestSuite(t *testing.T) {
	for name, c := range map[string]struct {
		listen transports.ListenSpec
		from   string
		large  int64
		more   map[string]any
	}{
		"IPv4":        {transports.ListenSpec{Host: "127.0.0.2"}, "127.0.0.3", int64(soak.Size(16<<20, 64<<20)), nil},
		"IPv6":        {transports.ListenSpec{Host: "::1"}, "", 8 << 20, nil},
		"Streams":     {transports.ListenSpec{Host: "127.0.0.2"}, "127.0.0.3", 8 << 20, map[string]any{"streams": 3.0}},
		"Near":        {transports.ListenSpec{Host: "127.0.0.2"}, "127.0.0.3", 8 << 20, map[string]any{"streams": 3.0}},
		"SmallWindow": {transports.ListenSpec{Host: "127.0.0.1"}, "", 8 << 20, map[string]any{"window": 65536.0, "lanes": 1.0}},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "SmallWindow" {
				soak.SkipUnlessSoak(t, "make test has the windows that it has by itself")
			}
			alpha, beta := two(t, c.more)
			if name == "Streams" {
				quic.NearNobody(beta)
			}
			transporttest.Run(t, func(t *testing.T) transporttest.Harness {
				return transporttest.Harness{Transport: alpha, Dialler: beta, Listen: c.listen, From: c.from, Large: c.large}
			})
		})
	}
}
