package ending

import (
	"errors"
	"fmt"
	"testing"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

func TestServersWordsNameSites(t *testing.T) {
	name := func(c wire.ClientRank) string {
		return fmt.Sprintf("site %s (client %d)", []string{"alpha", "beta"}[c], c)
	}
	for _, c := range []struct {
		err    error
		text   string
		status int
		remote bool
	}{
		{
			fmt.Errorf("startup: client 0: the server %w: client 1 (127.0.0.3:5) %w: rank 2 on site beta was killed by SIGKILL", startup.ErrFailed, startup.ErrFailed),
			"rank 2 on site beta was killed by SIGKILL", StatusRemote, true,
		}, {
			fmt.Errorf("startup: client 0: the server %w: client 1 (127.0.0.3:5): connection was lost before FINI", startup.ErrFailed),
			"site beta (client 1) at 127.0.0.3:5: connection was lost before FINI", StatusRemote, true,
		}, {
			fmt.Errorf("startup: client 0: the server %w: %w: clients {1} of 2 did not come within 1s", startup.ErrFailed, startup.ErrTimeout),
			"time limit is over: site beta (client 1) did not come within 1s", StatusTimeout, true,
		}, {
			fmt.Errorf("startup: client 0: the server %w: %w: 64 others are here (for 1m0s, which is the limit)", startup.ErrFailed, startup.ErrBusy),
			"server is busy: 64 others are here (for 1m0s, which is the limit): somebody keeps it so with connections that say nothing; its log has their addresses", StatusTimeout, false,
		}, {
			fmt.Errorf("startup: server: %w: clients {0,1} of 3 did not come within 1s", startup.ErrTimeout),
			"startup: server: time limit is over: site alpha (client 0), site beta (client 1) did not come within 1s", StatusTimeout, false,
		}, {
			fmt.Errorf("startup: client 7: %w", startup.ErrRank), "startup: client 7: client rank cannot be used", StatusNode, false,
		},
	} {
		f := ServerFailure(c.err, false, name)
		if f.Text != c.text || f.Status != c.status || f.Remote != c.remote || (!f.Remote && !errors.Is(f, c.err)) {
			t.Errorf("%v:\ngot  %q %d %v\nwant %q %d %v", c.err, f.Text, f.Status, f.Remote, c.text, c.status, c.remote)
		}
	}
}

// A server that goes away during startup is the failure; later others may know why it did.
func TestLossOfTheServer(t *testing.T) {
	lost := fmt.Errorf("startup: client 0: %w", startup.ErrLost)
	if f := ServerFailure(lost, false, nil); f.Precedence != Decided || f.Status != StatusRemote {
		t.Errorf("in startup: %+v", f)
	}
	if f := ServerFailure(lost, true, nil); f.Precedence != Lost || f.Status != StatusRemote {
		t.Errorf("after it: %+v", f)
	}
}

// TestToldByAChannel: what another host says by its channel is the word of its site.
func TestToldByAChannel(t *testing.T) {
	err := fmt.Errorf("read: %w", &agent.FailedError{Text: "rank 1 was killed"})
	if f := ChannelLost("host 3", err); f.Text != "rank 1 was killed" || !f.Remote || f.Precedence != Decided || f.Status != StatusRemote {
		t.Errorf("%+v", f)
	}
}
