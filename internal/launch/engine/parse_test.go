package engine

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/watchdog"
)

func TestExpandTasks(t *testing.T) {
	for list, want := range map[string][]int{"2": {2}, "2(x3),1": {2, 2, 2, 1}, "16,8(x2)": {16, 8, 8}} {
		if got, err := expandTasks(list); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v %v, want %v", list, got, err, want)
		}
	}
	for _, list := range []string{"", "2(x", "2(x)", "x", "2(x99999999)", "-1", "2,"} {
		if got, err := expandTasks(list); err == nil {
			t.Errorf("%s: %v, want an error", list, got)
		}
	}
}

func TestParseHostFile(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []Machine
	}{
		"MPICH":    {"# ours\nnode1:4\nnode2:2 # the small one\n\nnode3\n", []Machine{{Name: "node1", Tasks: 4}, {Name: "node2", Tasks: 2}, {Name: "node3"}}},
		"Open MPI": {"node1 slots = 4 max_slots=8\nme@node2 slots=2\nnode3 max-slots=3\nnode4 cpu=5\n", []Machine{{Name: "node1", Tasks: 4}, {Name: "node2", User: "me", Tasks: 2}, {Name: "node3"}, {Name: "node4", Tasks: 5}}},
		"PBS":      {"a\na\nb\na\n", []Machine{{Name: "a", Tasks: 3}, {Name: "b"}}},
		"repeated": {"a:2\na\na slots=3\n", []Machine{{Name: "a", Tasks: 6}}},
		"later":    {"a\na\na:2\n", []Machine{{Name: "a", Tasks: 4}}},
		"numbers":  {"10.0.0.1:2\nfe80::1\n[fe80::2]:3\n[fe80::3]\n", []Machine{{Name: "10.0.0.1", Tasks: 2}, {Name: "fe80::1"}, {Name: "fe80::2", Tasks: 3}, {Name: "fe80::3"}}},
		"options":  {"a:2 ifname=eth0 binding=user:0\nb user=you\n", []Machine{{Name: "a", Tasks: 2}, {Name: "b", User: "you"}}},
	} {
		got, err := ParseHostFile("hosts", strings.NewReader(c.text))
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v %v, want %v", name, got, err, c.want)
		}
	}
	for text, words := range map[string]string{
		"a\nb:0\n": "hosts:2: b: ", "a:x": "hosts:1: a: \"x\" is no number of procs", "# none\n": "hosts: it names no machine", "a b": "one machine in each line", "a slot=2": "no option \"slot\"",
		"-oProxyCommand=x": "no name of a machine", "@a": "no user", "me@a\nyou@a": "two users", "a;b": "no name of a machine", "a\n300.1.1.1:2": "hosts:2: \"300.1.1.1\" is neither", "node.7": "neither an address nor a name", "[a": "no name",
	} {
		if got, err := ParseHostFile("hosts", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %v %v, want %q", text, got, err, words)
		}
	}
	if _, err := ReadHostFile("/nowhere/hosts"); err == nil || !strings.Contains(err.Error(), "/nowhere/hosts") {
		t.Errorf("%v", err)
	}
}

func TestParseHosts(t *testing.T) {
	got, err := ParseHosts("a,b:2,a, me@c")
	want := []Machine{{Name: "a", Tasks: 2}, {Name: "b", Tasks: 2}, {Name: "c", User: "me", Tasks: 1}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v %v, want %v", got, err, want)
	}
	for _, text := range []string{"", "a,", "a:0"} {
		if got, err := ParseHosts(text); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
}

func TestSchedulerOfEnvironment(t *testing.T) {
	for variable, want := range map[string][2]bool{"SLURM_JOB_ID=7": {true, false}, "PBS_NODEFILE=/n": {false, true}, "HOME=/": {}, "SLURM_JOB_ID=": {}} {
		if got := [2]bool{InSlurm([]string{variable}), InPBS([]string{variable})}; got != want {
			t.Errorf("%s: in Slurm and in PBS are %v, want %v", variable, got, want)
		}
	}
}

func TestCommandCheck(t *testing.T) {
	for words, c := range map[string]Command{
		"no program":    {},
		"line break":    {Args: []string{"a"}, Secret: "a\nb"},
		"has a NUL":     {Args: []string{"a\x00b"}},
		"end of script": {Args: []string{"a", "b\nend of script\nrm"}},
		"no NAME=value": {Args: []string{"a"}, Env: []string{"A-B=1"}},
	} {
		if _, err := (Exec{}).Start(t.Context(), three, c); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, want %q", err, words)
		}
	}
}

// TestFilter cuts what comes at each place: nothing may depend on where a read ends.
func TestFilter(t *testing.T) {
	const mark = "impi-M"
	text := "Welcome\n\036impi-M here 4\na\036b\036impi-M what 3\nc\036impi-M end 7\nrest\036impi-"
	for cut := range len(text) {
		for _, step := range []int{1, len(text)} {
			var out bytes.Buffer
			var heard []said
			f := newFilter(mark, func(f *filter, s said) {
				heard = append(heard, s)
				if s.word == "here" {
					f.out = &out
				}
			})
			for _, part := range []string{text[:cut], text[cut:]} {
				for chunk := range slices.Chunk([]byte(part), step) {
					_, _ = f.Write(chunk)
				}
			}
			f.Close()
			if want := "a\036b\036impi-M what 3\ncrest\036impi-"; out.String() != want {
				t.Fatalf("cut at %d, in steps of %d: %q, want %q", cut, step, out.String(), want)
			}
			if string(f.messages.b) != "Welcome\n" || !slices.Equal(heard, []said{{"here", 4}, {"end", 7}}) {
				t.Fatalf("cut at %d: %q %v", cut, f.messages.b, heard)
			}
		}
	}
}

func TestLabels(t *testing.T) {
	text := "0: a\n1: b: c\nsrun: error: x\n 0: \n12: nobody\n1 : y\n99999999999: z\n1: partial"
	for _, step := range []int{1, 2, 3, 7, len(text)} {
		var a, b, others bytes.Buffer
		l := &labels{machines: []io.Writer{&a, &b}, others: &others}
		for chunk := range slices.Chunk([]byte(text), step) {
			_, _ = l.Write(chunk)
		}
		l.Close()
		got := fmt.Sprintf("%q %q %q", a.String(), b.String(), others.String())
		want := fmt.Sprintf("%q %q %q", "a\n\n", "b: c\npartial", "srun: error: x\n12: nobody\n1 : y\n99999999999: z\n")
		if got != want {
			t.Errorf("in steps of %d: %s, want %s", step, got, want)
		}
	}
}

func FuzzHosts(f *testing.F) {
	f.Add("me@node1:4 slots=2\n[fe80::1]:3\n")
	f.Add("2(x3),1")
	f.Fuzz(func(t *testing.T, text string) {
		defer watchdog.Start()()
		if tasks, err := expandTasks(text); err == nil && len(tasks) > maxMachines {
			t.Errorf("%d machines", len(tasks))
		}
		machines, err := ParseHostFile("hosts", strings.NewReader(text))
		for _, m := range machines {
			if err == nil && (m.Name == "" || strings.HasPrefix(m.Name, "-") || m.Tasks < 0 || m.Tasks > maxSlots) {
				t.Errorf("%+v", m)
			}
		}
	})
}

func FuzzStreams(f *testing.F) {
	f.Add([]byte("0: \036impi-M here 0\n0: x\n1: \036impi-M end 3\n"), 3)
	f.Add([]byte("\036impi-M here 0\nabc\036impi-M"), 1)
	f.Fuzz(func(t *testing.T, text []byte, step int) {
		defer watchdog.Start()()
		step = min(max(step, 1), len(text)+1)
		passed := [2]bytes.Buffer{}
		for k, step := range []int{step, len(text) + 1} { // the same, however it is cut
			filters := []*filter{}
			l := &labels{others: &passed[k]}
			for range 2 {
				filter := newFilter("impi-M", func(f *filter, s said) {
					fmt.Fprintf(&passed[k], "<%v>", s)
					f.out = &passed[k]
				})
				filters = append(filters, filter)
				l.machines = append(l.machines, filter)
			}
			for chunk := range slices.Chunk(text, step) {
				_, _ = l.Write(chunk)
			}
			l.Close()
			for _, f := range filters {
				f.Close()
				fmt.Fprintf(&passed[k], "<%q>", f.messages.b)
			}
		}
		if !strings.Contains(string(text), "\036") && passed[0].String() != passed[1].String() {
			t.Errorf("in steps of %d: %q, want %q", step, passed[0].String(), passed[1].String())
		}
	})
}
