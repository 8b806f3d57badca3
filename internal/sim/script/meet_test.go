package script

import (
	"fmt"
	"strings"
	"testing"
)

// TestGeneratedWorldsAreLegal: generated programs in which worlds meet are legal, have each kind of
// step, and can be formatted and parsed.
func TestGeneratedWorldsAreLegal(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(300) {
		p := example(seed, Options{
			Procs: 10, Worlds: []int{3, 1, 3, 3}, DataLen: 64, Steps: 16, Hosts: func(int) []string { return []string{"s0"} },
			Spawns: []Spawn{{World: "d", Procs: []int{2, 1}}, {Fails: NoSlots, Procs: []int{9}}, {Fails: ProcEnds, Procs: []int{1}}},
		})
		if err := Check(p); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, p)
		}
		if q, err := Parse(p.String()); err != nil || q.String() != p.String() {
			t.Fatalf("seed %d: %v\n%s", seed, err, p)
		}
		for _, s := range p.Steps {
			seen[Verb(s)]++
		}
		for i := range p.Messages {
			if m := &p.Messages[i]; p.WorldOf(m.From) != p.WorldOf(m.To) {
				seen["messages between worlds, mode "+m.Mode.String()]++
			}
		}
	}
	for _, verb := range []string{
		"openport", "closeport", "meet", "spawn", "idup", "finish", "merge", "intercomm", "disconnect", "free", "dup", "split", "cart", "allreduce", "barrier", "cancel",
		"publish", "unpublish", "lookup", "sever", "rejoin",
		"messages between worlds, mode standard", "messages between worlds, mode synchronous", "messages between worlds, mode buffered", "messages between worlds, mode ready",
	} {
		if seen[verb] == 0 {
			t.Errorf("no program has %s", verb)
		}
	}
}

// TestMeetingsRefused: steps that make no sense are refused. There are worlds a of two procs and b
// of one.
func TestMeetingsRefused(t *testing.T) {
	open, meet := "openport 0 1\n", "meet a with=b new=x withroot=2 port=1\n"
	part := "closeport 0 1\ndisconnect x\n"
	for name, c := range map[string]struct{ text, want string }{
		"":                          {open + meet + part, "<nil>"},
		"the same group twice":      {open + "meet a with=a1 new=x withroot=1 port=1\n" + part, "members in common"},
		"a root that is not":        {open + "meet a with=b new=x withroot=1 port=1\n" + part, "proc 1 not in b"},
		"another's port":            {"openport 1 1\n" + meet + part, "has not opened port 1"},
		"a port that is closed":     {open + "closeport 0 1\n" + meet + "disconnect x\n", "has not opened port 1"},
		"a port that stays":         {open + meet + "disconnect x\n", "leaves port 1 open"},
		"a name that is taken":      {"dup a new=b\n", "there has been a communicator"},
		"merging a world":           {"merge a new=x\n", "no intercommunicator"},
		"splitting two":             {open + meet + "split x new=y colors=0,0 keys=0,0\n" + part, "is an intercommunicator"},
		"leaving a world":           {"disconnect a\n", "cannot be freed"},
		"one that stays":            {open + meet + "closeport 0 1\n", "x is left"},
		"freed by all":              {open + meet + "closeport 0 1\nfree x\n", "no other communicator"},
		"freed by some":             {open + meet + "dup x new=y\nfree x\ncloseport 0 1\ndisconnect y\n", "<nil>"},
		"one that is gone":          {open + meet + part + "barrier x\n", "has been freed"},
		"one under way":             {"idup a new=x\nbarrier x\nfinish x\ndisconnect x\n", "has been freed"},
		"its parent is needed":      {"dup a new=x\nidup x new=y\nfree x\nfinish y\nfree y\n", "an Idup of x is under way"},
		"an end without beginning":  {"finish a\n", "no Idup makes"},
		"leaders apart":             {"intercomm a0 with=b peer=a new=x withlead=2\ndisconnect x\n", "cannot talk to each other"},
		"on one's own side":         {open + meet + "message 1 from=0 to=1 comm=x tag=1 type=int8 len=1\nisend 1\nrecv 1\nwait 0 s1\n" + part, "cannot send to proc 1 on x"},
		"a collective for one side": {open + meet + "bcast x id=1 type=int8 counts=1\n" + part, "Barrier, and Allreduce"},
		"spawned":                   {"spawn a world=b new=x root=0 procs=1\ndisconnect x\n", "<nil>"},
		"spawned twice":             {"spawn a world=b new=x root=0 procs=1\nspawn a world=b new=y root=0 procs=1\ndisconnect x\n", "no world b that is to be spawned"},
		"more procs than it has":    {"spawn a world=b new=x root=0 procs=1,1\ndisconnect x\n", "2 procs, and world b has 1"},
		"spawned by itself":         {"spawn b world=b new=x root=2 procs=1\ndisconnect x\n", "has been freed"},
		"spawned by a stranger":     {"spawn a world=b new=x root=2 procs=1\ndisconnect x\n", "proc 2 is not in a"},
		"hosts of some commands":    {"spawn a world=b new=x root=0 procs=1 hosts=s0,s0\ndisconnect x\n", "not as many hosts"},
		"it stays connected":        {"spawn a world=b new=x root=0 procs=1\n", "x is left"},
		"before it is there":        {"barrier b\nspawn a world=b new=x root=0 procs=1\ndisconnect x\n", "has been freed"},
		"a proc that is not there":  {"pause 2 1ms\nspawn a world=b new=x root=0 procs=1\ndisconnect x\n", "has not been spawned yet"},
		"a spawn without a world":   {"spawn a new=x root=0 procs=1\n", "spawns a world, or fails"},
		"it fails with a world":     {"spawn a world=b root=0 procs=1 fails=room\n", "spawns a world, or fails"},
		"nothing published":         {"publish 0 heat\n", "nothing is published"},
		"no name":                   {"lookup 0\n", "line 2"},
		"a name by nobody":          {"lookup 3 heat\n", "rank 3"},
		"a name of who is to go":    {"spawn a world=b new=x root=0 procs=1\npublish 2 heat text=p\ndisconnect x\nspawn a root=0 procs=9 fails=room\n", "depends on the timing"},
		"a world fails in between":  {"spawn a world=b new=x root=0 procs=1\ndisconnect x\nfail b\nbarrier a\n", "it is the last step"},
		"it fails connected":        {"spawn a world=b new=x root=0 procs=1\nfail b\n", "members of world b have communicator x with others"},
		"it fails unspawned":        {open + meet + part + "fail b\n", "its world is spawned before"},
		"a death connected":         {open + meet + part + "death at=3\n", "it is the only step"},
	} {
		p, err := Parse("procs 2 1\n" + c.text)
		if err == nil {
			err = Check(p)
		}
		if !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	if err := Check(&Program{Procs: 2, Steps: []Step{Idup{World, "x"}, Finish{"x"}, Free{"x"}}}); err == nil || !strings.Contains(err.Error(), "several worlds") {
		t.Errorf("in one world: %v", err)
	}
}

// TestPrune: the rest is legal if only what was left out was illegal.
func TestPrune(t *testing.T) {
	p, err := Parse(`procs 2 1
openport 0 1
meet a with=b new=x withroot=2 port=1
openport 1 2
closeport 1 2
message 1 from=0 to=2 comm=x tag=1 type=int8 len=1
isend 1
isend 2
recv 1
recv 2
wait 0 s1 s2
dup y new=z
barrier z
merge x new=m
closeport 0 1
disconnect x
disconnect m
disconnect z
`)
	if err != nil {
		t.Fatal(err)
	}
	p.Prune()
	want := `procs 2 1
openport 0 1
meet a with=b new=x withroot=2 port=1
message 1 from=0 to=2 comm=x tag=1 type=int8 len=1
isend 1
recv 1
wait 0 s1
merge x new=m
closeport 0 1
disconnect x
disconnect m
`
	if p.String() != want || Check(p) != nil {
		t.Errorf("%v\n%s", Check(p), p)
	}
}
