package spawn

import (
	"fmt"
	"reflect"
	"testing"
	"time"
)

// TestSpread has commands divided among hosts, some of which have procs already.
func TestSpread(t *testing.T) {
	for _, tt := range []struct {
		name          string
		granted       []int // by command
		hosts         []int
		load, weights map[int]int // by host; 0 and 1 if there is none
		want          []HostPart
	}{
		{name: "nothing", granted: []int{0}, hosts: []int{1}},
		{name: "one host", granted: []int{2, 0, 1}, hosts: []int{3}, want: []HostPart{{3, []int{2, 0, 1}}}},
		{name: "evenly, the first of equals gets more", granted: []int{5}, hosts: []int{2, 0, 1}, want: []HostPart{{2, []int{2}}, {0, []int{2}}, {1, []int{1}}}},
		{name: "a command is cut where a host's procs end", granted: []int{1, 3}, hosts: []int{0, 1}, want: []HostPart{{0, []int{1, 1}}, {1, []int{0, 2}}}},
		{name: "fewer procs than hosts", granted: []int{1}, hosts: []int{2, 0, 1}, want: []HostPart{{2, []int{1}}}},
		{name: "who has fewer gets more", granted: []int{3}, hosts: []int{0, 1, 2}, load: map[int]int{0: 2, 1: 1}, want: []HostPart{{1, []int{1}}, {2, []int{2}}}},
		{name: "a host for twice as many", granted: []int{6}, hosts: []int{0, 1}, weights: map[int]int{1: 2}, want: []HostPart{{0, []int{2}}, {1, []int{4}}}},
	} {
		got := spread(tt.granted, tt.hosts, func(h int) int { return tt.load[h] }, func(h int) int { return max(tt.weights[h], 1) })
		if fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestHostPartOf: a host starts the commands that it has procs of, with just as many.
func TestHostPartOf(t *testing.T) {
	p := &Part{World: "w", Host: "any", Commands: commands(4, 5, 6)}
	got := (&HostPart{Host: 1, Procs: []int{2, 0, 6}}).CommandsOf(p)
	if got.World != "w" || got.Host != "" || len(got.Commands) != 2 || got.Commands[0].Procs != 2 || got.Commands[1].Number != 2 || got.Commands[1].Procs != 6 {
		t.Errorf("%+v", got)
	}
	if p.Commands[0].Procs != 4 {
		t.Error("the part itself has changed")
	}
}

// TestSlotsOfHosts: parts are spread by what hosts have already, and give back one host at a time.
func TestSlotsOfHosts(t *testing.T) {
	s := Slots[string]{Site: "alpha", Total: 6, Procs: []int{2, 1}}
	reserve := func(part string, procs int, hosts ...int) []HostPart {
		soft, _ := ReadSoft("", procs)
		s.Reserve(time.Unix(1, 0), part, SlotRequest{Commands: commands(procs), Soft: []Soft{soft}, Hosts: hosts})
		s.Tick(time.Unix(1, 0).Add(SlotGrace)) // refused, if the site is full
		a, ok := s.Next()
		if !ok || a.Part != part {
			t.Fatalf("%s: %+v", part, a)
		}
		return a.HostParts
	}
	want := func(got []HostPart, hostParts ...HostPart) {
		t.Helper()
		if !reflect.DeepEqual(got, hostParts) {
			t.Errorf("%v, want %v", got, hostParts)
		}
	}
	want(reserve("a", 3, 1, 0), HostPart{1, []int{1}}, HostPart{0, []int{2}})
	want(reserve("b", 1, 1), HostPart{1, []int{1}}) // where it must be, though the other has more room
	want(reserve("c", 1, 1, 0), HostPart{0, []int{1}})
	s.ReleaseAt("a", 0)
	if s.Taken() != 3 {
		t.Errorf("%d are taken, not 3", s.Taken())
	}
	want(reserve("d", 3, 1, 0), HostPart{0, []int{3}})
	if got := reserve("e", 1, 0); got != nil {
		t.Errorf("%v of a full site", got)
	}
	s.ReleaseAt("a", 0)
	s.Release("a")
	if s.Taken() != 5 {
		t.Errorf("%d are taken, not 5", s.Taken())
	}
}
