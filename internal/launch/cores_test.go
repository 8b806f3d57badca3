package launch

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func set(cpus ...int) (s unix.CPUSet) {
	for _, cpu := range cpus {
		s.Set(cpu)
	}
	return s
}

// CPUs with the same siblings are one core, of which only the usable ones count.
func TestCoresOf(t *testing.T) {
	dir := t.TempDir()
	for cpu, siblings := range map[int]string{0: "0,4", 1: "1,5", 4: "0,4", 5: "1,5", 6: "", 7: ""} {
		at := filepath.Join(dir, fmt.Sprintf("cpu%d/topology", cpu))
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, "thread_siblings_list"), []byte(siblings+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := []unix.CPUSet{set(0, 4), set(2), set(3), set(5), set(6), set(7)}
	got := coresOf(set(0, 2, 3, 4, 5, 6, 7), dir)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v", got)
	}
}

func TestSpread(t *testing.T) {
	cores := make([]unix.CPUSet, 8)
	for i := range cores {
		cores[i].Set(i)
	}
	for n := 1; n <= len(cores); n++ {
		var taken unix.CPUSet
		for i := range n {
			c := Spread(cores, i, n)
			for cpu := range cores {
				if c.IsSet(cpu) && taken.IsSet(cpu) {
					t.Errorf("%d procs: CPU %d is given twice", n, cpu)
				}
				if c.IsSet(cpu) {
					taken.Set(cpu)
				}
			}
		}
		if taken.Count() != n {
			t.Errorf("%d procs have %d CPUs", n, taken.Count())
		}
	}
	if c := Spread(cores, 1, 2); !c.IsSet(4) {
		t.Error("the second of two procs is not in the other half")
	}
}

// A process is bound to its CPUs from its start, and the next one has those of its starter
// again.
func TestBoundFromTheStart(t *testing.T) {
	cores, err := Cores()
	if err != nil || len(cores) == 0 {
		t.Fatal(cores, err)
	}
	l := New()
	defer l.Close()
	allowed := func(cpus *unix.CPUSet) string {
		var out bytes.Buffer
		stdout := NewOutput(&out, nil)
		s := spec("cpus", stdout.Stream(nil))
		s.CPUs = cpus
		p, err := l.Start(s)
		if err != nil {
			t.Fatal(err)
		}
		<-p.Done()
		return strings.TrimSpace(out.String())
	}
	before := allowed(nil)
	last := cores[len(cores)-1]
	if got := allowed(&last); got != fmt.Sprint(last) {
		t.Errorf("bound to %v: %s", last, got)
	}
	if got := allowed(nil); got != before {
		t.Errorf("after that: %s, before: %s", got, before)
	}
	none := spec("cpus", nil)
	none.CPUs = &unix.CPUSet{}
	if _, err := l.Start(none); err == nil || !strings.Contains(err.Error(), "bind to CPUs") {
		t.Errorf("without a CPU: %v", err)
	}
}
