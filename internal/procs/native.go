package procs

import (
	"maps"
	"os"
	"slices"
	"strconv"

	"github.com/openimpi/impi/internal/launch"
	"github.com/openimpi/impi/internal/wireup"
)

// LauncherSpec returns how to start the launcher of the site's own MPI. The caller sets what to
// start. own are the variables, as NAME=value, that the procs must have on every machine: those of
// the launcher's environment may stay on this one. The caller closes Stdin.
func (s *Set) LauncherSpec() (spec launch.Spec, own []string, err error) {
	site := s.Routes.Site
	program := site.Program
	var prefix func() string // it is not known which proc has written a line
	if program.PrefixOutput {
		prefix = func() string { return "[" + site.Name + "] " }
	}
	spec = launch.Spec{
		Dir: program.Dir, Env: launcherEnv(os.Environ(), keyVariables(s.Routes.Job), nil),
		Stdout: s.Stdout.Stream(prefix), Stderr: s.Stderr.Stream(prefix),
	}
	for _, name := range slices.Sorted(maps.Keys(program.Env)) {
		own = append(own, name+"="+program.Env[name])
	}
	if n := s.procs(); n > 0 {
		own = append(own, wireup.EnvProcs+"="+strconv.Itoa(n))
	}
	spec.Stdin, err = s.stdinOf(0) // launchers give theirs to rank 0
	return spec, append(own, siteVariable+"="+site.Name), err
}
