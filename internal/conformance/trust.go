package conformance

import (
	"time"

	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// trust is how long the cases of a run may wait. A plugin of which several cases have hung is
// not worth the full patience any more: its author wants the verdict.
type trust struct {
	hung   int           // cases that have reached their time limit
	failed bool          // a rule is violated, whatever follows
	most   time.Duration // patience at first
}

// Number of hung cases that shortens the patience, and number that ends the run.
const (
	hungSome = 2
	hungMany = 8
)

func (t trust) patience() time.Duration {
	if t.hung >= hungSome {
		return t.most / 6
	}
	return t.most
}

func (t trust) limit() time.Duration {
	if t.hung >= hungSome {
		return 2 * t.most
	}
	return 4 * t.most
}

// lost reports whether the rest is not worth trying.
func (t trust) lost() bool { return t.hung >= hungMany }

// slowEnd is how long the processes of one case take to end if their listeners hang at Close.
const slowEnd = 4 * time.Second

// saw counts a case that has hung: it has failed and might wait so long. One whose processes
// did not end in time counts too, but only if the verdict is known: what a busy machine makes slow
// must not leave rules untried.
func (t *trust) saw(out transporttest.Outcome, waited, ending time.Duration) {
	t.failed = t.failed || out.Verdict == transporttest.Fail
	if out.Verdict == transporttest.Fail && out.Took >= waited/2 || t.failed && ending >= slowEnd {
		t.hung++
	}
}
