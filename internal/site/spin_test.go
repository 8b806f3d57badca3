package site

import (
	"testing"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/plugins/sdk/support/polling"
)

func TestSpinSetting(t *testing.T) {
	for setting, w := range map[string]config.Wait{
		"auto": {Auto: true}, "0s": {}, "20µs": {Spin: 20 * time.Microsecond},
	} {
		if got := EncodeWait(w); got != setting {
			t.Errorf("%+v is %q", w, got)
		}
		if _, err := polling.NewSpinner(EncodeWait(w)); err != nil {
			t.Error(err)
		}
	}
}
