package node

import (
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
