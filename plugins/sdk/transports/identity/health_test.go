package identity

import (
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
)

func TestHealth(t *testing.T) {
	ca := pkitest.Authority(t)
	id := load(t, pkitest.Site(t, "alpha", ca, ca, nil))
	end := id.Expires()
	for left, want := range map[time.Duration]string{
		soon + time.Hour: "", soon - time.Hour: "expires on", time.Minute: "in 1m0s: impi-node cert issue -renew alpha", -time.Second: "expired on",
	} {
		id.now = func() time.Time { return end.Add(-left) }
		err := id.Health()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v before the end: %v, want %q", left, err, want)
		}
	}
	if err := (*Identity)(nil).Health(); err != nil {
		t.Errorf("no identity: %v", err)
	}
}
