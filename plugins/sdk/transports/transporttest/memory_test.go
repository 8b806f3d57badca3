package transporttest_test

import (
	"testing"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/link/linktest"
	"github.com/openimpi/impi/plugins/sdk/support/memory"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// newMemory has links in memory, the reference of the contract, behind wrap.
func newMemory(wrap func(link.Link) link.Link) transporttest.Harness {
	return transporttest.Harness{
		Transport: memory.New(func() (dialled, accepted link.Link) {
			a, b := linktest.Pair(100_000)
			return wrap(a), wrap(b)
		}),
		Listen:    transports.ListenSpec{Name: "here"},
		Large:     16 << 20,
		InProcess: true,
	}
}

func TestMemory(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		return newMemory(func(l link.Link) link.Link { return l })
	})
}

// A link that moves few bytes at a time, or none, fulfils the contract too.
func TestChoppedMemory(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		sizes := []int{1, 0, 977, 100, 0, 0, 60000}
		return newMemory(func(l link.Link) link.Link {
			i := 0
			return linktest.Chop(l, func() int { i++; return sizes[i%len(sizes)] })
		})
	})
}
