package tcp_test

import (
	"testing"

	"github.com/openimpi/impi/internal/soak"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
	"github.com/openimpi/impi/transports/tcp"
)

func TestSuite(t *testing.T) {
	for name, h := range map[string]transporttest.Harness{
		"IPv4": {Listen: transports.ListenSpec{Host: "127.0.0.2"}, From: "127.0.0.3"},
		"IPv6": {Listen: transports.ListenSpec{Host: "::1"}},
	} {
		t.Run(name, func(t *testing.T) {
			transporttest.Run(t, func(t *testing.T) transporttest.Harness {
				h.Transport, h.Dialler, h.Large = tcp.New(), tcp.New(), int64(soak.Size(16<<20, 64<<20))
				return h
			})
		})
	}
}
