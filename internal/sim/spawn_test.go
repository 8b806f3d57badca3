package sim

import (
	"fmt"
	"strings"
	"testing"
)

// spawning is a job of two sites, the first of them of two hosts, with slots for spawned procs.
const spawning = `seed 1
job direct=yes
site hosts=1,1 slots=%d
site hosts=1 slots=%d
procs 3 %d
`

// TestSpawn spawns procs at all places there are, each with as many slots as it needs and not one
// less.
func TestSpawn(t *testing.T) {
	for name, tt := range map[string]struct {
		program string
		procs   int // of b
		slots   [2]int
	}{
		"where the spawner is":  {"spawn a world=b new=x root=1 procs=2\ndisconnect x\n", 2, [2]int{2, 0}},
		"at another site":       {"spawn a world=b new=x root=1 procs=2 hosts=s1\ndisconnect x\n", 2, [2]int{0, 2}},
		"at two hosts of one":   {"spawn a world=b new=x root=0 procs=1,1 hosts=localhost,10.0.1.1\ndisconnect x\n", 2, [2]int{2, 0}},
		"neighbours":            {"spawn a world=b new=x root=0 procs=1,2 hosts=localhost,10.0.0.1\ndisconnect x\n", 3, [2]int{3, 0}},
		"here, there and again": {"spawn a world=b new=x root=2 procs=1,2,1 hosts=localhost,10.0.1.1,s1\ndisconnect x\n", 4, [2]int{2, 2}},
		"by one alone":          {"spawn a2 world=b new=x root=2 procs=1\nbarrier x\ndisconnect x\n", 1, [2]int{0, 1}},
		"talk": {"spawn a world=b new=x root=0 procs=2\nmessage 1 from=2 to=4 comm=x tag=1 type=int32 len=9\nisend 1\nrecv 1\nwait 2 s1\nmerge x new=y\n" +
			"allreduce y id=1 type=int32 counts=3\ndisconnect y\ndisconnect x\n", 2, [2]int{2, 0}},
	} {
		text := func(slots [2]int) string { return fmt.Sprintf(spawning, slots[0], slots[1], tt.procs) + tt.program }
		c, err := Parse(text(tt.slots))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if v := Run(c, Options{Trace: 40}); v.Failure != nil {
			t.Errorf("%s: %v\n%s", name, v.Failure, v.Trace)
		}
		for i := range tt.slots {
			fewer := tt.slots
			if fewer[i]--; fewer[i] < 0 {
				continue
			}
			if _, err := Parse(text(fewer)); err == nil || !strings.Contains(err.Error(), "may be no room") {
				t.Errorf("%s: with a slot less at site %d: %v", name, i, err)
			}
			if c, err = read(text(fewer)); err != nil {
				t.Fatal(err)
			}
			if f := play(c, 0, func(*execution) {}).Failure; f == nil || f.Oracle != "order" {
				t.Errorf("%s: with a slot less at site %d it ends with %v", name, i, f)
			}
		}
	}
}

// TestSpawnFails: spawns that cannot succeed fail at all members, and leave nothing.
func TestSpawnFails(t *testing.T) {
	const head = "seed 1\njob direct=yes\nsite hosts=2 slots=2\nsite hosts=1 slots=1\nsite hosts=1\nprocs 3 1\n"
	for step, want := range map[string]string{
		"spawn a root=0 procs=3 fails=room\n":               "",
		"spawn a root=2 procs=2 fails=room\n":               "",
		"spawn a root=0 procs=2 fails=room hosts=s1\n":      "",
		"spawn a root=0 procs=2 fails=room\n":               "there may be room",
		"spawn a root=1 procs=1 fails=place hosts=x\n":      "",
		"spawn a root=1 procs=2 fails=life\n":               "",
		"spawn a root=1 procs=3 fails=life\n":               "may be no room",
		"spawn a root=1 procs=1,1 fails=life\n":             "",
		"spawn a root=1 procs=1,1 fails=room\n":             "there may be room",
		"spawn a root=1 procs=1,2 fails=room hosts=s1,s0\n": "there may be room",
		"spawn a root=1 procs=1,3 fails=room hosts=s1,s0\n": "",
		"spawn a root=1 procs=1,1 fails=place hosts=x,x\n":  "has one command",
		"spawn a root=3 procs=1 fails=life\n":               "not in a",
	} {
		c, err := Parse(head + step)
		if want == "" && err == nil {
			v := Run(c, Options{Trace: 40})
			if err = nil; v.Failure != nil {
				t.Errorf("%s: %v\n%s", step, v.Failure, v.Trace)
			}
		}
		if !strings.Contains(fmt.Sprint(err), want) || want == "" && err != nil {
			t.Errorf("%s: %v, want %q", step, err, want)
		}
	}
}

// TestSpawnAgain: slots of a world that its parents have left are waited for, and spawned procs
// spawn others.
func TestSpawnAgain(t *testing.T) {
	for _, text := range []string{
		"site hosts=2 slots=2\nprocs 2 2 2\nspawn a world=b new=x root=0 procs=2\ndisconnect x\nspawn a world=c new=y root=0 procs=1,1\ndisconnect y\n",
		"site hosts=2 slots=3\nprocs 2 2 1\nspawn a world=b new=x root=0 procs=2\nspawn b world=c new=y root=3 procs=1\ndisconnect x\ndisconnect y\n",
	} {
		c, err := Parse("seed 1\njob direct=yes\n" + text)
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(20) {
			c.Seed = seed
			if v := Run(c, Options{Trace: 40}); v.Failure != nil {
				t.Fatalf("seed %d: %v\n%s\n%s", seed, v.Failure, text, v.Trace)
			}
		}
	}
}

// TestSpawnForgotten: without its step a world that was to be spawned is not there.
func TestSpawnForgotten(t *testing.T) {
	const text = "site hosts=1 slots=1\nsite hosts=1\nprocs 1 1 1\nspawn a world=c new=x root=0 procs=1\ndisconnect x\n"
	c, err := Parse("seed 1\njob\n" + text)
	if err != nil {
		t.Fatal(err)
	}
	if c.forget(); len(c.Program.Worlds) != 3 {
		t.Errorf("%v", c)
	}
	c.Program.Steps = nil
	if c.forget(); len(c.Program.Worlds) != 2 || c.Check() != nil {
		t.Errorf("%v\n%v", c.Check(), c)
	}
}
