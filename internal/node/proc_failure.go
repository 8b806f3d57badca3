package node

import (
	"fmt"

	"github.com/openimpi/impi/core/blame"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/launch"
	"github.com/openimpi/impi/internal/node/ending"
)

// who names a proc for a message; rank is NoRank before startup is over.
type who struct {
	site  string
	rank  wire.WorldRank
	local int
}

const noRank wire.WorldRank = -1

func (w who) String() string {
	if w.rank == noRank {
		return fmt.Sprintf("proc %d of site %s", w.local, w.site)
	}
	return fmt.Sprintf("rank %d on site %s", w.rank, w.site)
}

// procEnded is the failure of a proc that ended in the given phase of its life.
func procEnded(w who, phase procPhase, e launch.Exit) *ending.Failure {
	f := &ending.Failure{Text: fmt.Sprintf("%v %v", w, e), Status: e.Status(), Weight: blame.Died, Proc: w.local + 1}
	switch {
	case phase == starting:
		f.Text += " before it called MPI Init"
	case e.OK():
		f.Text += " without MPI Finalize"
	}
	if f.Status == 0 {
		f.Status = 1
	}
	return f
}

// procAborted is the failure of a proc that called Abort.
func procAborted(w who, code int, reason string) *ending.Failure {
	f := &ending.Failure{Text: fmt.Sprintf("%v called MPI Abort with code %d", w, code), Status: code & 0xff, Weight: blame.Died, Proc: w.local + 1}
	if reason != "" {
		f.Text += ": " + reason
	}
	if f.Status == 0 {
		f.Status = 1
	}
	return f
}
