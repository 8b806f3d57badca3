package conformance

import (
	"bytes"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// A plugin that needs all rights is judged with them if its author says so, which the report
// repeats; if not, the error says how.
func TestUnconfined(t *testing.T) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		skips.NotRun(t, "a filter of system calls for "+runtime.GOARCH, "run it on amd64 or arm64")
	}
	s := subject("changes owners")
	o := Options{Quick: true, Run: regexp.MustCompile("P-CALL-02|T-DIAL-02"), Planes: onlyFD}
	if _, err := Run(t.Context(), s, o); err == nil || !strings.Contains(err.Error(), "-unconfined") || !strings.Contains(err.Error(), "not permitted") {
		t.Errorf("confined: %v", err)
	}
	s.Unconfined = true
	r, err := Run(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict != transporttest.Pass || r.Passed != 2 || !r.Site.Unconfined {
		t.Errorf("%+v", r)
	}
	var text bytes.Buffer
	r.WriteSummary(&text)
	for _, words := range []string{"unconfined: it was judged with all rights", "  confine = false\n"} {
		if !strings.Contains(text.String(), words) {
			t.Errorf("%q is not in\n%s", words, &text)
		}
	}
	s = subject("untyped") // which has nothing to do with rights
	s.Settings = map[string]any{"colour": "red"}
	if _, err := Run(t.Context(), s, o); err == nil || strings.Contains(err.Error(), "-unconfined") {
		t.Errorf("unknown settings: %v", err)
	}
}
