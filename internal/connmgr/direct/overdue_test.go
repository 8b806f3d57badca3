package direct

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// The message says whether the limit or the plugin's pause has ended a link.
func TestOverdue(t *testing.T) {
	paused := &transports.Error{Transport: "x", Op: "dial", Reason: "died too often", Cause: &host.Error{Plugin: "x", Kind: host.ErrFailed}}
	for want, err := range map[string]error{
		"limits { resume } is over: dialled 7 times within 30s, at last: x: refused":        errors.New("x: refused"),
		"its plugin died too often, and was not started again before limits { resume } was": fmt.Errorf("x at y: %w", paused),
	} {
		if got := overdue(30*time.Second, 7, err); !strings.HasPrefix(got, want) {
			t.Errorf("%q, not %q...", got, want)
		}
	}
}
