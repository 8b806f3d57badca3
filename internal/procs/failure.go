package procs

import (
	"fmt"
	"time"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/routes"
)

// ProcID identifies a proc in a message; rank is NoRank before startup is over.
type ProcID struct {
	Site  string
	Rank  wire.WorldRank
	Local int // its number at the site
}

// String returns the rank, or what is known before there are ranks.
func (w ProcID) String() string {
	if w.Rank == routes.NoRank {
		return fmt.Sprintf("proc %d of site %s", w.Local, w.Site)
	}
	return fmt.Sprintf("rank %d on site %s", w.Rank, w.Site)
}

// report calls f with the node's ending and what is known of the proc. A failure after Finalize is
// only logged: the other procs go on, as they may have results to write.
func (p *Proc) report(f func(now time.Time, e *ending.Ending, p ending.Proc) (late *ending.Failure)) {
	x := ending.Proc{Name: p.ID().String(), Number: p.Local, State: p.State(), Loss: p.lost(), Aborted: p.aborted.Load()}
	var late *ending.Failure
	p.set.End.Report(func(now time.Time, e *ending.Ending) { late = f(now, e, x) })
	if late != nil {
		p.set.Log.Warn("a proc failed after the end of its job", "problem", late.Text)
	}
}

func (p *Proc) ends(x ending.Exit) {
	if p.State() == ending.InMPI && !p.aborted.Load() && p.set.Losses != nil {
		var f *ending.Failure
		p.report(func(_ time.Time, e *ending.Ending, p ending.Proc) *ending.Failure {
			f = e.ProcLost(p, x)
			return nil
		})
		p.set.Losses.Lost(p, f)
		return
	}
	p.report(func(now time.Time, e *ending.Ending, p ending.Proc) *ending.Failure { return e.ProcEnded(now, p, x) })
}
