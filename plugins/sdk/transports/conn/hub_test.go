package conn_test

import (
	"testing"
	"time"

	"github.com/openimpi/impi/plugins/sdk/transports/conn"
)

// A hub counts a look by how long it takes, so that who waits for its core waits no longer for slow
// ones.
func TestLooksAreWeighed(t *testing.T) {
	quick, slow := conn.WeightOf(func() {}), conn.WeightOf(func() {
		for begun := time.Now(); time.Since(begun) < 3*time.Microsecond; {
		}
	})
	if slow < 30 || quick > slow/2 {
		t.Errorf("a look of 3 us counts %d, one of none %d", slow, quick)
	}
}
