package conn_test

import (
	"net"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

func TestSuite(t *testing.T) {
	for name, wrap := range map[string]func(net.Conn, bool) transports.Conn{"tcp": plain, "tls": secure, "framed": framed} {
		t.Run(name, func(t *testing.T) {
			transporttest.Run(t, func(*testing.T) transporttest.Harness {
				return transporttest.Harness{Transport: over{wrap}, Listen: transports.ListenSpec{Name: "l"}, Large: 16 << 20}
			})
		})
	}
}
