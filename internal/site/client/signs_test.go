package client

import (
	"testing"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/membership"
	"github.com/openimpi/impi/internal/routes"
)

// TestSignsOfLife: the file's limit reaches the tree, which notices a lost host before it is over.
func TestSignsOfLife(t *testing.T) {
	for limit, want := range map[time.Duration][2]time.Duration{
		0:                {2 * time.Second, 8 * time.Second},
		10 * time.Second: {2 * time.Second, 8 * time.Second},
		time.Minute:      {12 * time.Second, 48 * time.Second},
	} {
		if beat, silence := membership.SignsOfLife(routes.SilenceLimit(&config.Job{Limits: config.Limits{Silence: limit}})); beat != want[0] || silence != want[1] {
			t.Errorf("%v: %v, %v", limit, beat, silence)
		}
	}
}
