package procs

import (
	"fmt"

	"github.com/openimpi/impi/core/blame"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/launch"
	"github.com/openimpi/impi/internal/node/ending"
	"github.com/openimpi/impi/internal/node/routes"
)

// Who names a proc for a message; rank is NoRank before startup is over.
type Who struct {
	Site  string
	Rank  wire.WorldRank
	Local int // its number at the site
}

// String says the rank, or what is known before there are ranks.
func (w Who) String() string {
	if w.Rank == routes.NoRank {
		return fmt.Sprintf("proc %d of site %s", w.Local, w.Site)
	}
	return fmt.Sprintf("rank %d on site %s", w.Rank, w.Site)
}

// late reports a proc that failed after Finalize. The others go on: they may have
// results to write.
func (s *Set) late(f *ending.Failure) {
	if first, _ := s.End.Late(f); first {
		s.Log.Warn("a proc failed after the end of its job", "problem", f.Text)
	}
}

// procEnded is the failure of a proc that ended in the given phase of its life.
func procEnded(w Who, phase Phase, e launch.Exit) *ending.Failure {
	f := &ending.Failure{Text: fmt.Sprintf("%v %v", w, e), Status: e.Status(), Weight: blame.Died, Proc: w.Local + 1}
	switch {
	case phase == Starting:
		f.Text += " before it called MPI Init"
	case e.OK(), e.Unseen:
		f.Text += " without MPI Finalize"
	}
	if f.Status == 0 {
		f.Status = 1
	}
	return f
}

// procAborted is the failure of a proc that called Abort.
func procAborted(w Who, code int, reason string) *ending.Failure {
	f := &ending.Failure{Text: fmt.Sprintf("%v called MPI Abort with code %d", w, code), Status: code & 0xff, Weight: blame.Died, Proc: w.Local + 1}
	if reason != "" {
		f.Text += ": " + reason
	}
	if f.Status == 0 {
		f.Status = 1
	}
	return f
}
