package dial

import (
	"fmt"
	"testing"

	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/routes/routestest"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// TestLocal: what stays on the machine is told from what may meet a firewall.
func TestLocal(t *testing.T) {
	away := routes.Candidate{Transport: routestest.Transport("quic", transports.ReachNetwork)}
	here := routes.Candidate{Transport: routestest.Transport("unix", transports.ReachMachine)}
	if got := Local([]routes.Candidate{here, away}); len(got) != 2 || !got[0] || got[1] {
		t.Errorf("%v", got)
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
