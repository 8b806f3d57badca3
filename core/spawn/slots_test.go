package spawn

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestSlots has parts a, b, ... of one or more commands share the slots of a site. A step is the
// name of a part and "+" with its procs by command, "-" for its end, "~" for one that is about to
// end, "!" for one that does not want to wait any more, "?" for one that withdraws whatever it
// asked or will, or "s" and the seconds that pass, or "h" for half a second. What comes behind " >
// " are the answers.
func TestSlots(t *testing.T) {
	for name, steps := range map[string][]string{
		"nobody waits long for those who stay": {
			"a+3 > a[3]", "b+2 >", "h > b refused: of the 4 slots of site alpha for spawned procs 3 are taken, and it needs 2 more",
			"a- >", "b+2 > b[2]"},
		"nor for what the site does not have": {
			"a+3 > a[3]", "b+5 > b refused: of the 4 slots of site alpha for spawned procs 3 are taken, and it needs 5 more"},
		"even if somebody leaves":             {"a+3 > a[3]", "a~ >", "b+5 > b refused: of the 4 slots of site alpha for spawned procs 3 are taken, and it needs 5 more"},
		"hears late of who leaves":            {"a+4 > a[4]", "b+1 >", "a- > b[1]"},
		"hears late of who is about to leave": {"a+4 > a[4]", "b+1 >", "a~ >", "s9 >", "a- > b[1]"},
		"who comes back has room":             {"a+4 > a[4]", "a- >", "a+4 > a[4]"},
		"all commands of a part count": {
			"a+2,3 > a refused: of the 4 slots of site alpha for spawned procs 2 are taken, and it needs 3 more",
			"b+2,2 > b[2 2]"},
		"soft takes what there is": {"a+3 > a[3]", "b+0:9 > b[1]", "c+0:9 > c[0]", "c- >", "b- >", "d+0:9 > d[1]"},
		"waits for who leaves": {
			"a+4 > a[4]", "a~ >", "b+2 >", "c+2 >", "d+1 >", "h >", "a- > b[2] c[2] d refused: of the 4 slots of site alpha for spawned procs 4 are taken, and it needs 1 more"},
		"waits on if another one leaves": {"a+2 > a[2]", "b+2 > b[2]", "a~ >", "b~ >", "c+4 >", "a- >", "b- > c[4]"},
		"who waits first is first, but keeps nobody from what it cannot use": {
			"a+3 > a[3]", "a~ >", "b+4 >", "c+1 > c[1]", "h >", "a- > b refused: of the 4 slots of site alpha for spawned procs 1 are taken, and it needs 4 more"},
		"waits for a while": {
			"a+4 > a[4]", "a~ >", "b+1 >", "s5 >", "c+1 >",
			"s5 > b refused: of the 4 slots of site alpha for spawned procs 4 are taken, and it needs 1 more",
			"a- > c[1]", "s9 >"},
		"gives up": {
			"a+4 > a[4]", "a~ >", "b+1 >", "b! > b refused: of the 4 slots of site alpha for spawned procs 4 are taken, and it needs 1 more", "a- >", "b! >"},
		"withdraws before it asks": {"a? >", "a+3 > a refused: the request for slots of site alpha was withdrawn", "b+4 > b[4]"},
		"withdraws what it has":    {"a+4 > a[4]", "a? >", "b+4 > b[4]"},
		"withdraws what it waits for": {
			"a+4 > a[4]", "a~ >", "b+1 >", "b? > b refused: of the 4 slots of site alpha for spawned procs 4 are taken, and it needs 1 more", "a- >", "b+4 > b[4]"},
		"a part gives back what it has once": {"a+4 > a[4]", "a- >", "b+4 > b[4]", "a- >", "c+1 >", "h > c refused: of the 4 slots of site alpha for spawned procs 4 are taken, and it needs 1 more"},
	} {
		now, leaves := time.Unix(1, 0), make(map[string]bool)
		s := Slots[string]{Site: "alpha", Total: 4, Leaving: func(p string) bool { return leaves[p] }}
		for _, step := range steps {
			what, want, _ := strings.Cut(step, " >")
			part, arg := what[:1], what[min(len(what), 2):]
			switch {
			case part == "s", part == "h":
				d := 0
				_, _ = fmt.Sscan(what[1:], &d)
				now = now.Add(time.Duration(d) * time.Second)
				if part == "h" {
					now = now.Add(SlotGrace)
				}
				if at, ok := s.Deadline(); ok && !now.Before(at) {
					s.Tick(now)
				}
			case what[1] == '+':
				var list []Command
				var soft []Soft
				for i, n := range strings.Split(arg, ",") {
					procs := 9
					_, _ = fmt.Sscan(n, &procs)
					if strings.Contains(n, ":") {
						procs = 9
					}
					x, problem := ReadSoft(n, procs)
					if problem != "" {
						t.Fatal(problem)
					}
					list, soft = append(list, Command{Number: i, Path: "p", Procs: procs}), append(soft, x)
				}
				s.Reserve(now, part, SlotRequest{Commands: list, Soft: soft, Hosts: []int{0}})
			case what[1] == '-':
				s.Release(part)
			case what[1] == '~':
				leaves[part] = true
			case what[1] == '!':
				s.Cancel(part)
			case what[1] == '?':
				s.Withdraw(part)
			}
			var said string
			for {
				a, ok := s.Next()
				if !ok {
					break
				}
				if a.Refused != nil {
					_, reason, behind := strings.Cut(a.Refused.Reason, "): ")
					if !behind {
						reason = a.Refused.Reason
					}
					said += fmt.Sprintf(" %s refused: %s", a.Part, reason)
				} else {
					said += fmt.Sprintf(" %s%v", a.Part, a.Granted)
				}
			}
			if said != want {
				t.Errorf("%s: %s: %q, want %q", name, what, said, want)
			}
		}
		if _, ok := s.Deadline(); ok {
			t.Errorf("%s: somebody waits still", name)
		}
	}
}

// TestSlotsTaken: what is given back is taken no more.
func TestSlotsTaken(t *testing.T) {
	s := Slots[int]{Total: 2}
	s.Reserve(time.Time{}, 1, SlotRequest{Commands: commands(2), Soft: []Soft{{{2, 2, 1}}}, Hosts: []int{0}})
	if s.Taken() != 2 {
		t.Errorf("%d of 2", s.Taken())
	}
	s.Release(1)
	if s.Release(1); s.Taken() != 0 {
		t.Errorf("%d of 0", s.Taken())
	}
}
