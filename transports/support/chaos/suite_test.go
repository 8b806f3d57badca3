package chaos_test

import (
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
	"github.com/openimpi/impi/transports/shm"
	"github.com/openimpi/impi/transports/support/chaos"
	"github.com/openimpi/impi/transports/tcp"
	"github.com/openimpi/impi/transports/unix"
)

// moderate faults, which the contract survives.
var moderate = map[string]any{
	"delay": "200us", "jitter": "100us", "bandwidth": 1e9, "piece": 8192.0, "stall": "1ms", "stall_every": 1e6, "buffer": 1 << 20 * 1.0,
}

// configured is a chaos with settings that Configure keeps: the suite configures
// the defaults, which are no faults, in one of its cases only.
func configured(t testing.TB, settings map[string]any) transports.Transport {
	t.Helper()
	c := chaos.New(chaos.Options{Around: []transports.Transport{tcp.New(), unix.New(), shm.New()}})
	all := transports.Defaults(c.Schema())
	for name, value := range settings {
		all[name] = value
	}
	if err := c.Configure(all); err != nil {
		t.Fatal(err)
	}
	return c
}

// The whole suite around tcp; around the others without the cases that take their
// time and have nothing to do with what is inside.
func TestSuite(t *testing.T) {
	long := []string{"large", "short-links", "busy-links", "no-memory-left"}
	for _, around := range []string{"tcp", "unix", "shm"} {
		for _, c := range transporttest.Cases() {
			if around == "tcp" || !slices.Contains(long, c.Name) {
				t.Run(around+"/"+c.Name, func(t *testing.T) { c.Run(t, harness(t, around)) })
			}
		}
	}
}

func harness(t *testing.T, around string) transporttest.Harness {
	t.Helper()
	settings := map[string]any{"around": around}
	maps.Copy(settings, moderate)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return transporttest.Harness{
		Transport: configured(t, settings),
		Listen:    transports.ListenSpec{Host: "127.0.0.2", Dir: dir, Name: "chaos"},
		Large:     8 << 20,
	}
}
