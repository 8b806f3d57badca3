package procs

import (
	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/launch"
)

// takeCores finds the cores that the procs are bound to, if the file wants that and there are
// enough cores. Spawned procs are never bound, as it is not known how many there will be.
func (s *Set) takeCores(find func() ([]unix.CPUSet, error)) {
	if s.Routes.Site.Program.Bind != config.BindCore || s.World != "" {
		return
	}
	cores, err := find()
	switch {
	case err != nil:
		s.Log.Warn("procs are not bound to cores", "error", err)
	case len(cores) < s.boundProcs():
		s.Log.Warn("procs are not bound to cores: there are fewer cores than procs; start fewer, or leave out bind", "cores", len(cores), "procs", s.boundProcs())
	default:
		s.cores = cores
	}
}

func (s *Set) boundProcs() int { return max(s.Bound, s.BoundBefore+s.Routes.Site.Procs()) }

// cpus returns the CPUs that a proc, numbered within its site, may run on, or nil for any.
func (s *Set) cpus(local int) *unix.CPUSet {
	if s.cores == nil {
		return nil
	}
	return launch.Spread(s.cores, s.BoundBefore+local-s.Routes.ProcsBefore, s.boundProcs())
}
