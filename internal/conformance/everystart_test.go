package conformance

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// asSeen has the name of what a faulty plugin makes where it is to fail once, or only from then on.
const asSeen = "IMPI_TEST_SEEN"

// A plugin that nodes can start once is not called correct because no link of it was tried.
func TestEveryStart(t *testing.T) {
	const once = `if [ -n "$PLUGIN_CLIENT_CERT" ]; then mkdir "$` + asSeen + `" || exit 3; fi; exec REAL`
	for _, c := range []struct{ name, fault, text, run, words string }{
		{"starts once", "", once, "P-CALL-02|T-ORDER-01", "status 3"},
		{"starts once, its links are not chosen", "", once, "P-CALL-02", ""},
		{"listens later", "listens later", "exec REAL", "P-CALL-02|T-ORDER-01", "not yet"},
		{"listens later, its links are not chosen", "listens later", "exec REAL", "P-CALL-02", ""},
		{"cannot be linked", "odd plane", "exec REAL", "P-CALL-02|T-ORDER-01", "no rule about links was tried; its data planes are carrier-pigeon"},
		{"cannot be linked, its links are not chosen", "odd plane", "exec REAL", "P-CALL-02", ""},
		{"sound", "", "exec REAL", "P-CALL-02|fd:P-START-11|T-DIAL-02", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := subject(c.fault)
			s.Path = install(t, "impi-transport-tcp", c.text)
			s.Env = append(s.Env, asSeen+"="+filepath.Join(t.TempDir(), "seen"))
			r, err := Run(t.Context(), s, Options{Quick: true, Run: regexp.MustCompile(c.run)})
			if err != nil {
				t.Fatal(err)
			}
			if c.words == "" {
				if r.Verdict != transporttest.Pass || !r.Correct || r.Failed != 0 {
					t.Errorf("%+v", r.Results)
				}
				return
			}
			if r.Verdict != transporttest.Fail || r.Correct || r.Passed == 0 {
				t.Errorf("not found: %+v", r)
			}
			for _, x := range r.Results {
				if x.Verdict == transporttest.Fail && (x.ID != "P-START-11" || !strings.Contains(x.Reason, c.words) || !strings.Contains(x.Reason, x.Rule) || x.Remedy == "") {
					t.Errorf("%+v", x)
				}
				if c.name == "starts once" && strings.HasPrefix(x.ID, "T-") {
					t.Errorf("rules of links that there are not: %+v", x)
				}
			}
		})
	}
}

// Each data plane that is listed and not excluded has a failure of its own if the plugin does not
// start with it.
func TestEveryPlaneHasToStart(t *testing.T) {
	s := subject("")
	s.Path = install(t, "impi-transport-tcp", `if [ -n "$PLUGIN_CLIENT_CERT" ]; then mkdir "$`+asSeen+`" || exit 3; fi; exec REAL`)
	s.Env = append(s.Env, asSeen+"="+filepath.Join(t.TempDir(), "seen"))
	r, err := Run(t.Context(), s, Options{Quick: true, Run: regexp.MustCompile("P-CALL-02|T-ORDER-01"),
		Planes: []transports.DataPlane{transports.PlaneFD, transports.PlaneRing}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Passed != 1 || r.Failed != 2 || r.failures(Correct) != "P-START-11 (fd), P-START-11 (ring)" {
		t.Errorf("%+v", r.Results)
	}
}
