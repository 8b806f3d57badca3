package conformance

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// A badge is XML whatever the plugin calls itself, and claims no more than the run has shown.
func TestBadge(t *testing.T) {
	results := []Result{{ID: "P-CALL-01"}, {ID: "T-DIAL-01", Plane: "fd"}, {ID: "T-DIAL-02", Plane: "fd"}, {ID: "T-DIAL-01", Plane: "ring"}}
	for want, r := range map[string]*Report{
		"correct and robust (fd, ring)":            {Verdict: transporttest.Pass, Passed: 4, Results: results, Site: &Site{Name: "mine"}},
		"correct and robust (fd, ring), quick run": {Verdict: transporttest.Pass, Passed: 4, Quick: true, Results: results},
		"no link was tried":                        {Verdict: transporttest.Pass, Passed: 1, Results: []Result{{ID: "P-CALL-01", Verdict: transporttest.Pass}, {ID: "T-DIAL-01", Plane: "fd", Verdict: transporttest.Skip}}},
		"3 of 4 rules violated":                    {Verdict: transporttest.Fail, Passed: 1, Failed: 3, Results: results, Site: &Site{Name: `<"&>`, SHA256: "00ff", Unconfined: true}},
	} {
		var b bytes.Buffer
		if err := r.WriteBadge(&b); err != nil {
			t.Fatal(err)
		}
		text, bad := b.String(), !strings.HasPrefix(want, "correct")
		if !strings.Contains(text, ">"+want+"</text>") || bad != strings.Contains(text, "#b42318") {
			t.Errorf("%q is not in\n%s", want, text)
		}
		if got := strings.Contains(text, ", unconfined"); got != (r.Site != nil && r.Site.Unconfined) {
			t.Errorf("unconfined: %v in\n%s", got, text)
		}
		if r.Site != nil && r.Site.SHA256 != "" && !strings.Contains(text, "sha256 00ff") {
			t.Errorf("no checksum in\n%s", text)
		}
		for d := xml.NewDecoder(&b); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
		}
	}
}
