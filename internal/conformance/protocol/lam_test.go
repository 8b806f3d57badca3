package protocol

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/conformance/iut"
	"github.com/openimpi/impi/internal/conformance/play"
	"github.com/openimpi/impi/internal/interpreter"
	"github.com/openimpi/impi/internal/peers"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/soak"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// An implementation that nobody here wrote passes what it does right, and fails where
// it is known to be wrong, with what it is known for. docs/conformance/lam.md has all of
// it.
func TestLAM(t *testing.T) {
	in, err := peers.Find()
	if err != nil {
		skips.NotRun(t, err.Error(), "make peers")
	}
	soak.SkipUnlessSoak(t, "make test has jobs with LAM in internal/peers, and the tester by ours")
	dir, err := os.MkdirTemp("", "impi-conform-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	s, err := iut.LAM(in.Prefix, interpreter.C, dir)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{ // empty: it passes
		"IMPI-2-JOB-01": "", "IMPI-2-JOB-02": "", "IMPI-2-JOB-03": "", "IMPI-2-AUTH-02": "", "IMPI-2-COLL-01": "",
		"IMPI-3-SHORT-01": "", "IMPI-3-LONG-01": "", "IMPI-3-FLOW-02": "", "IMPI-4-BARRIER-01": "", "IMPI-4-BCAST-01": "", "IMPI-3-FINAL-04": "",
		// about other rules than those that it breaks on the way
		"IMPI-3-PACKET-05": "", "IMPI-3-FLOW-06": "", "IMPI-3-LONG-07": "", "IMPI-3-CANCEL-09": "", "IMPI-3-ORDER-02": "", "IMPI-4-BCAST-06": "",
		"IMPI-3-SYNC-01":   "has not finished",
		"IMPI-3-ORDER-08":  "has not finished",
		"IMPI-3-DATA-05":   "is 03000000, not 00000003",
		"IMPI-3-DATA-07":   "is 8, not 4",
		"IMPI-4-REDUCE-02": "pk_cid of the reduction's message is 0, not 1",
		"IMPI-3-CANCEL-02": "is CANCELNO, not CANCELYES",
		"IMPI-2-DANCE-08":  "is 127.0.0.1, not 127.0.0.3",
	}
	ids := make([]string, 0, len(want))
	for id := range want {
		ids = append(ids, id)
	}
	r, err := Run(context.Background(), s, Options{
		Run: regexp.MustCompile("^(" + strings.Join(ids, "|") + ")$"), Parallel: 4, Patience: 30 * time.Second, Data: play.NativeLittle,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range r.Results {
		reason, known := want[x.ID]
		if !known || (x.Verdict == transporttest.Pass) != (reason == "") || !strings.Contains(x.Reason, reason) {
			t.Errorf("%s: %s %s\n%s", x.ID, x.Verdict, x.Reason, strings.Join(x.Trace, "\n"))
		}
		delete(want, x.ID)
	}
	for id := range want {
		t.Errorf("%s was not tried", id)
	}
}
