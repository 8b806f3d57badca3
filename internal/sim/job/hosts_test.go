package job

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestAMachineIsLost: a machine is lost before its site is there, during startup or while procs
// run, and others see its connections end or nothing at all. The site names it, as soon as that is
// possible.
func TestAMachineIsLost(t *testing.T) {
	const machines = 7 // 1 and 2 below the head, 3 to 6 below those
	for _, c := range []struct {
		name   string
		at     time.Duration
		silent bool
		want   string
		within time.Duration
	}{
		{"it does not come", 0, false, "machines [1 3 4] of site 0 are missing", time.Minute + 10*time.Second},
		{"in startup", 55 * time.Millisecond, false, "machine 1 of site 0 is lost: its connection has ended", time.Minute + 10*time.Second},
		{"in startup, silently", 55 * time.Millisecond, true, "machine 1 of site 0 is lost: nothing was heard of it|host 1 at 10.0.1.1:1 was not reached: no answer in time", time.Minute + 10*time.Second},
		{"running", 2 * time.Second, false, "machine 1 of site 0 is lost", 3 * time.Second},
		{"running, silently", 2 * time.Second, true, "machine 1 of site 0 is lost: nothing was heard of it", 11 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range seeds(20) {
				cfg := Config{Sites: []Site{{Hosts: make([]int, machines)}, {Hosts: []int{1}}}, Direct: seed%2 > 0, Links: rough()}
				for i := range machines {
					cfg.Sites[0].Hosts[i] = 1
				}
				cfg.Links.Proc.Capacity, cfg.Links.Channel.Capacity = 1<<16, 1<<16
				cfg.Program = func(e Env) error {
					e.Pause(20 * time.Second)
					return ring(e)
				}
				f := Fault{Kind: LoseHost, At: c.at, Target: 1}
				if c.silent {
					f.Target += machines
				}
				r := simulate(t, seed, cfg, f)
				err := r.Sites()[0]
				if len(r.Hits) != 1 || err == nil || !slices.ContainsFunc(strings.Split(c.want, "|"), func(why string) bool { return strings.Contains(err.Error(), why) }) {
					t.Errorf("seed %d: hits %v, and the site ended with: %v", seed, r.Hits, err)
				}
				if took := r.World.k.Now() - c.at; took > c.within {
					t.Errorf("seed %d: the job ended after %v", seed, took)
				}
				if server := fmt.Sprint(r.Server()); c.at > time.Second && !strings.Contains(server, "machine 1 of site 0 is lost") {
					t.Errorf("seed %d: the server was told: %s", seed, server)
				}
			}
		})
	}
}
