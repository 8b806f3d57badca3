package spawn

import (
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/mpierr"
)

// commands are commands with these numbers of procs.
func commands(procs ...int) []Command {
	var list []Command
	for i, n := range procs {
		list = append(list, Command{Number: i, Path: "prog", Procs: n})
	}
	return list
}

// tells wants a refusal that is about a command, or none if want is empty.
func tells(t *testing.T, what string, r *Refusal, command int, want string) {
	t.Helper()
	switch {
	case want == "" && r != nil:
		t.Errorf("%s: refused: %v", what, r)
	case want != "" && (r == nil || r.Command != command || !strings.Contains(r.Error(), want)):
		t.Errorf("%s: %+v, want command %d and %q", what, r, command, want)
	}
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name     string
		unable   bool
		commands []Command
		about    int
		want     string
	}{
		{name: "one proc", commands: commands(1)},
		{name: "as many as there may be", commands: commands(MaxProcs-1, 1)},
		{name: "as many commands as there may be", commands: commands(slices.Repeat([]int{1}, MaxCommands)...)},
		{name: "with another MPI", unable: true, commands: commands(1), about: -1, want: "cannot meet others, nor spawn them"},
		{name: "nothing", about: -1, want: "1 to 1024 commands"},
		{name: "too many commands", commands: commands(slices.Repeat([]int{1}, MaxCommands+1)...), about: -1, want: "1 to 1024 commands"},
		{name: "no procs", commands: commands(1, 0), about: 1, want: "command 1 (prog): 0 procs; 1 to 8192"},
		{name: "less than none", commands: commands(-1), about: 0, want: "command 0 (prog): -1 procs"},
		{name: "too many of one", commands: commands(1, MaxProcs+1), about: 1, want: "8193 procs; 1 to"},
		{name: "too many together", commands: commands(MaxProcs, 1), about: -1, want: "8193 procs, at most 8192"},
	} {
		tells(t, tt.name, Check(!tt.unable, tt.commands), tt.about, tt.want)
	}
}

func TestPartCheck(t *testing.T) {
	for _, tt := range []struct {
		world string
		procs []int
		want  string
	}{
		{"alpha.spawn1", []int{1, 2}, ""},
		{strings.Repeat("w", 100), []int{MaxProcs}, ""},
		{strings.Repeat("w", 101), []int{1}, "1 procs in world"},
		{"", []int{1}, `in world ""`},
		{"../x", []int{1}, `in world "../x"`},
		{"w", nil, "0 commands"},
		{"w", []int{0}, "a command with 0 procs"},
		{"w", []int{MaxProcs + 1}, "a command with 8193 procs"},
		{"w", []int{MaxProcs, 1}, "8193 procs in"},
		{"w", slices.Repeat([]int{1}, MaxCommands+1), "1025 commands"},
	} {
		p := Part{World: tt.world, Commands: commands(tt.procs...)}
		tells(t, tt.world, p.Check(), -1, tt.want)
	}
}

func TestFits(t *testing.T) {
	p := Part{Commands: commands(2, 1)}
	for _, tt := range []struct {
		granted []int
		want    bool
	}{
		{[]int{2, 1}, true}, {[]int{0, 0}, true}, {[]int{3, 1}, false}, {[]int{2, -1}, false}, {[]int{2}, false}, {[]int{2, 1, 0}, false}, {nil, false},
	} {
		if got := p.Fits(tt.granted); got != tt.want {
			t.Errorf("%v: %v", tt.granted, got)
		}
	}
}

func TestCodes(t *testing.T) {
	ok, other, failed := int(mpierr.Success), int(mpierr.Other), int(mpierr.Spawn)
	for _, tt := range []struct {
		name    string
		granted []int
		r       *Refusal
		want    []int
	}{
		{"all", []int{2, 1}, nil, []int{ok, ok, ok}},
		{"some", []int{1, 0}, nil, []int{ok, failed, failed}},
		{"the second command is to blame", nil, Refuse(1, "x"), []int{other, other, failed}},
		{"no command is to blame", nil, Refuse(-1, "x"), []int{failed, failed, failed}},
	} {
		if got := Codes(commands(2, 1), tt.granted, tt.r); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestSoft(t *testing.T) {
	for _, tt := range []struct {
		text        string
		procs, room int
		want        int
	}{
		{"", 4, 9, 4},
		{"", 4, 3, -1},
		{"0:8", 8, 5, 5},
		{"1:16:2,20", 20, 30, 20},
		{"1:16:2,20", 20, 19, 15},
		{"1:16:2,20", 20, 0, -1},
		{"7,3", 9, 5, 3},
		{"8:2:-3", 9, 7, 5},
		{" 2 , 4 ", 9, 3, 2},
	} {
		s, problem := ReadSoft(tt.text, tt.procs)
		if got := s.LargestUpTo(min(tt.procs, tt.room)); problem != "" || got != tt.want {
			t.Errorf("%q of %d with room for %d: %d %s", tt.text, tt.procs, tt.room, got, problem)
		}
	}
	for _, text := range []string{",", "a", "1:2:3:4", "1:4:0", "99999999", "1::2", "-99999:99999", strings.Repeat("1,", maxRanges) + "1"} {
		if _, problem := ReadSoft(text, 4); !strings.Contains(problem, "no list of numbers") {
			t.Errorf("%q: %q", text, problem)
		}
	}
}
