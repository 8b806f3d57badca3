package trace_test

import (
	"io"
	"testing"

	"github.com/openimpi/impi/internal/soak"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
	"github.com/openimpi/impi/transports/support/trace"
	"github.com/openimpi/impi/transports/tcp"
)

func TestSuite(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		return transporttest.Harness{
			Transport: trace.Wrap(tcp.New(), io.Discard),
			Listen:    transports.ListenSpec{Host: "127.0.0.2"},
			Large:     int64(soak.Size(16<<20, 64<<20)),
			InProcess: true, // a descriptor would leave without being traced
		}
	})
}
