package fabrictest_test

import (
	"testing"

	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/fabric/fabrictest"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

func TestSuite(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		x, err := fabrictest.New()
		if err != nil {
			t.Fatal(err)
		}
		y, err := fabrictest.New()
		if err != nil {
			t.Fatal(err)
		}
		return transporttest.Harness{
			Transport: x, Dialler: y,
			Listen: transports.ListenSpec{Dir: t.TempDir(), Name: "l"},
		}
	})
}
