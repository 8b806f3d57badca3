package dial

import (
	"fmt"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/routes/routestest"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// TestShare: all ways to a host together take no longer than there is, however many there are, and
// those that stay on the machine take nothing from the others.
func TestShare(t *testing.T) {
	away := routes.Candidate{Transport: routestest.Transport("quic", transports.ReachNetwork)}
	here := routes.Candidate{Transport: routestest.Transport("unix", transports.ReachMachine)}
	for n, candidates := range [][]routes.Candidate{{away}, {away, away}, {away, here, away}, {here, away, away, away}} {
		left := ReachLimit
		for i, w := range candidates {
			limit := FirstLimit(left, candidates[i:])
			if w == here {
				if limit < ReachLimit {
					t.Errorf("%d: the machine's own way has %v", n, limit)
				}
				continue
			}
			left -= limit
			if limit < ReachLimit/time.Duration(len(candidates)) {
				t.Errorf("%d: way %d has %v", n, i, limit)
			}
		}
		if left != 0 {
			t.Errorf("%d: %v are left", n, left)
		}
	}
	if limit := FirstLimit(0, []routes.Candidate{away}); limit != leastShare {
		t.Errorf("the last one has %v", limit)
	}
}

// TestUnreached: a firewall that refuses, one that drops and a port where nobody listens are not
// reached. A peer that has said something is, and so is one that this host has no descriptors for.
func TestUnreached(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&transports.Error{Op: "dial", Code: transports.CodeUnreachable}, true},
		{&transports.Error{Op: "dial", Code: transports.CodeTimeout}, true},
		{&transports.Error{Op: "dial", Code: transports.CodeRefused}, true},
		{&transports.Error{Op: "dial", Code: transports.CodeResource}, true},
		{fmt.Errorf("link: %w", &transports.Error{Op: "dial", Code: transports.CodeUnreachable}), true},
		{&transports.Error{Op: "dial", Code: transports.CodeResource, Retryable: true}, false},
		{&transports.Error{Op: "dial", Code: transports.CodeAuth}, false},
		{&transports.Error{Op: "listen", Code: transports.CodeUnreachable}, false},
		{ErrNoRoom, false},
	} {
		if got := IsUnreached(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}
