package inspect

import (
	"maps"
	"testing"

	"github.com/openimpi/impi/internal/wireup"
)

// TestRetransmits: sums do not fall when somebody does not answer, and are of the site's transports
// alone.
func TestRetransmits(t *testing.T) {
	var r retransmits
	said := func(n uint64) *wireup.Stats {
		return &wireup.Stats{Retransmits: map[string]uint64{"tcp": n, "odd": 1}}
	}
	type counts = map[string]uint64
	for i, step := range []struct {
		procs             []*wireup.Stats
		channels, plugins counts
		want              counts
	}{
		{[]*wireup.Stats{{}, {}}, nil, nil, counts{}},
		{[]*wireup.Stats{said(0), {}}, nil, nil, counts{"tcp": 0}},
		{[]*wireup.Stats{said(3), said(4)}, counts{"tcp": 10}, counts{"tcp": 100, "quic": 5}, counts{"tcp": 117, "quic": 5}},
		{[]*wireup.Stats{nil, said(5)}, counts{"tcp": 10}, counts{"tcp": 100, "quic": 5}, counts{"tcp": 118, "quic": 5}}, // one is silent
		{[]*wireup.Stats{nil, nil}, nil, nil, counts{"tcp": 118, "quic": 5}},
		{[]*wireup.Stats{said(4), nil}, counts{"tcp": 11}, counts{"tcp": 100, "quic": 6}, counts{"tcp": 120, "quic": 6}},
	} {
		if got := r.sum([]string{"quic", "tcp", "shm"}, step.procs, step.channels, step.plugins); !maps.Equal(got, step.want) {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
	}
}
