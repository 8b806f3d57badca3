package node

import (
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
)

func TestAppNumCountsDifferentPrograms(t *testing.T) {
	program := func(command ...string) config.Site {
		return config.Site{Program: config.Program{Command: command}}
	}
	sites := []config.Site{program("./a"), {Foreign: true}, program("./b", "x"), program("./a"), program("./b", "y")}
	for i, want := range []int{0, -1, 1, 0, 2} {
		if want >= 0 && appNum(sites, sites[i]) != want {
			t.Errorf("site %d: %d, want %d", i, appNum(sites, sites[i]), want)
		}
	}
	if got := appNum(nil, program("./a")); got != 0 {
		t.Errorf("without a job file: %d", got)
	}
}

// Procs of a job whose sites run several programs know which theirs is.
func TestAppNumOfPrograms(t *testing.T) {
	job := testJob("appnum", 1, 2, 1)
	job.Sites[1].Program.Command = []string{"prog", "of beta"}
	all := start(t, job)
	wantNone(t, all)
	for site, want := range []string{"appnum 0 true <nil>", "appnum 1 true <nil>", "appnum 0 true <nil>"} {
		if n := strings.Count(all[site].out.String(), want); n != job.Sites[site].Hosts[0].Procs {
			t.Errorf("site %d: %d procs say %q:\n%s", site, n, want, all[site].out)
		}
	}
}
