package procs

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/routes"
)

// Procs of two sites on one machine have different cores, whatever procs are on other machines;
// where there are too few, or the file does not ask, or the procs were spawned, nobody is bound.
func TestCoresOfProcs(t *testing.T) {
	hosts := []config.Host{{Procs: 1}, {Procs: 2}}
	for name, c := range map[string]struct {
		bind          config.Bind
		world         string
		before, bound int
		elsewhere     int // procs of the site on machines before this one
		cores         int
		want          []int // CPU of each proc; nil: unbound
		warns         bool
	}{
		"alone":                 {bind: config.BindCore, cores: 6, want: []int{0, 2, 4}},
		"just enough":           {bind: config.BindCore, cores: 3, want: []int{0, 1, 2}},
		"first of two":          {bind: config.BindCore, bound: 4, cores: 4, want: []int{0, 1, 2}},
		"second of two":         {bind: config.BindCore, before: 1, bound: 4, cores: 4, want: []int{1, 2, 3}},
		"on the second machine": {bind: config.BindCore, elsewhere: 2, cores: 6, want: []int{0, 2, 4}},
		"too few":               {bind: config.BindCore, cores: 2, warns: true},
		"too few both":          {bind: config.BindCore, bound: 5, cores: 4, warns: true},
		"none":                  {bind: config.BindNone, cores: 6},
		"unsaid":                {cores: 6},
		"spawned":               {bind: config.BindCore, world: "w", cores: 6},
	} {
		var log bytes.Buffer
		s := New(Settings{
			Routes: &routes.Table{Site: &config.Site{Hosts: hosts, Program: config.Program{Bind: c.bind}}, ProcsBefore: c.elsewhere},
			World:  c.world, BoundBefore: c.before, Bound: c.bound, Log: hclog.New(&hclog.LoggerOptions{Output: &log}),
		})
		s.takeCores(func() ([]unix.CPUSet, error) {
			cores := make([]unix.CPUSet, c.cores)
			for i := range cores {
				cores[i].Set(i)
			}
			return cores, nil
		})
		for i := range 3 {
			got := s.cpus(c.elsewhere + i)
			if (got == nil) != (c.want == nil) || got != nil && !got.IsSet(c.want[i]) {
				t.Errorf("%s: proc %d: %v", name, i, got)
			}
		}
		if warns := strings.Contains(log.String(), "fewer cores than procs"); warns != c.warns {
			t.Errorf("%s: the log says %q", name, &log)
		}
	}
}
