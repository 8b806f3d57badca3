package procs

import (
	"sync"

	"github.com/openimpi/impi/core/ending"
)

// without keeps the procs that have ended well and never called Init: if none of a site does, its
// program does not use MPI; mpiexec runs such programs, too.
type without struct {
	mu    sync.Mutex
	mpi   bool     // a proc has called Init
	ended []func() // report the ends of procs without a call of Init
	all   chan struct{}
}

// WithoutMPI returns a channel that is closed when all procs have ended with status 0 and none has
// called Init, if Settings.MayDoWithout is set.
func (s *Set) WithoutMPI() <-chan struct{} { return s.without.all }

// inMPI says that a proc has called Init: the ends of those that have not are failures.
func (w *without) inMPI() {
	w.mu.Lock()
	ended := w.ended
	w.mpi, w.ended = true, nil
	w.mu.Unlock()
	for _, report := range ended {
		report()
	}
}

// keeps reports whether the end of a proc is no failure as far as is known. If it turns out to be
// one it is reported then.
func (p *Proc) keeps(x ending.Exit) bool {
	w := &p.set.without
	if !p.set.MayDoWithout || p.State() != ending.Starting || x.Status != 0 || x.Unseen || p.aborted.Load() {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mpi {
		return false
	}
	if w.ended = append(w.ended, func() { p.ends(x) }); len(w.ended) == p.set.Routes.Site.Procs() {
		close(w.all)
	}
	return true
}
