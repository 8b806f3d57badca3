package ctest

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
)

// traceEvent is what the documented format of trace events has in common (Trace Event Format,
// Google).
type traceEvent struct {
	Ph, Name, Cat string
	Pid, Tid      *int
	Ts, Dur       *float64
	Id            json.RawMessage
	Scope         string `json:"s"`
	Args          map[string]any
}

// overlap is by how much a call may begin before the end of the one before it in a file, in
// microseconds: how long a tick of the counter is gets more precise while the file is written.
const overlap = 100

// traceFaults are what a file has that the format of trace events does not allow, or that viewers
// show wrongly. It knows more of the format than files of this release have, so that the check
// holds when they have more.
func traceFaults(b []byte) (faults []string) {
	var events []traceEvent
	if err := json.Unmarshal(b, &events); err != nil {
		return []string{err.Error()}
	}
	bad := func(i int, format string, args ...any) {
		faults = append(faults, fmt.Sprintf("event %d: ", i)+fmt.Sprintf(format, args...))
	}
	type thread struct{ pid, tid int }
	type named struct {
		thread
		what string
	}
	type flow struct{ cat, name, id string }
	names, open, flows, calls := make(map[named]bool), make(map[thread][]string), make(map[flow]int), make(map[thread][]traceEvent)
	for i, e := range events {
		if e.Pid == nil || e.Tid == nil || e.Name == "" {
			bad(i, "no pid, tid or name: %+v", e)
			continue
		}
		at := thread{*e.Pid, *e.Tid}
		if e.Ph != "M" && (e.Ts == nil || *e.Ts < 0) {
			bad(i, "%s has no time", e.Name)
			continue
		}
		switch e.Ph {
		case "M":
			if x := (named{at, e.Name}); names[x] {
				bad(i, "%s a second time", e.Name)
			} else {
				names[x] = true
			}
			if name, ok := e.Args["name"].(string); !ok || name == "" {
				bad(i, "%s without a name", e.Name)
			}
		case "X":
			if e.Dur == nil || *e.Dur < 0 {
				bad(i, "%s has no duration", e.Name)
				continue
			}
			calls[at] = append(calls[at], e)
		case "i":
			if !slices.Contains([]string{"g", "p", "t"}, e.Scope) {
				bad(i, "an instant of scope %q", e.Scope)
			}
		case "B":
			open[at] = append(open[at], e.Name)
		case "E":
			if n := len(open[at]); n == 0 || open[at][n-1] != e.Name {
				bad(i, "E of %s, which is not the innermost of %v", e.Name, open[at])
			} else {
				open[at] = open[at][:n-1]
			}
		case "s", "t", "f":
			x := flow{e.Cat, e.Name, string(e.Id)}
			switch n := flows[x]; {
			case len(e.Id) == 0:
				bad(i, "a flow without an id")
			case e.Ph == "s" && n != 0:
				bad(i, "the id %s is there already", e.Id)
			case e.Ph != "s" && n != 1:
				bad(i, "a flow goes on that has not begun, or has ended: id %s", e.Id)
			}
			flows[x] = map[string]int{"s": 1, "t": 1, "f": 2}[e.Ph]
		default:
			bad(i, "phase %q", e.Ph)
		}
	}
	for at, left := range open {
		if len(left) > 0 {
			faults = append(faults, fmt.Sprintf("thread %v: no E of %v", at, left))
		}
	}
	for x, n := range flows {
		if n != 2 {
			faults = append(faults, fmt.Sprintf("flow %v does not end", x))
		}
	}
	for at, list := range calls {
		for _, what := range []string{"process_name", "thread_name"} {
			if !names[named{at, what}] {
				faults = append(faults, fmt.Sprintf("thread %v has no %s", at, what))
			}
		}
		faults = append(faults, overlaps(list)...)
	}
	return faults
}

// overlaps are slices of one thread of which neither is within the other, which viewers draw
// wrongly.
func overlaps(list []traceEvent) (faults []string) {
	slices.SortStableFunc(list, func(a, b traceEvent) int {
		if *a.Ts != *b.Ts {
			return map[bool]int{true: -1, false: 1}[*a.Ts < *b.Ts]
		}
		return map[bool]int{true: -1, false: 1}[*a.Dur > *b.Dur]
	})
	var around []float64 // ends of those that the next one may be within
	for _, e := range list {
		begun, ended := *e.Ts, *e.Ts+*e.Dur
		for len(around) > 0 && around[len(around)-1] <= begun+overlap {
			around = around[:len(around)-1]
		}
		if n := len(around); n > 0 && ended > around[n-1]+overlap {
			faults = append(faults, fmt.Sprintf("%s at %f overlaps the call before it", e.Name, begun))
		}
		around = append(around, ended)
	}
	return faults
}

// wantFormat wants files of trace events, of one rank each, to follow the format.
func wantFormat(t *testing.T, files []string) {
	t.Helper()
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if faults := traceFaults(b); len(faults) > 0 {
			t.Errorf("%s: %d faults, among them %v", name, len(faults), faults[:min(len(faults), 5)])
		}
	}
}

// TestTraceFaults: what the format does not allow is found.
func TestTraceFaults(t *testing.T) {
	const names = `{"ph":"M","name":"process_name","pid":0,"tid":1,"args":{"name":"host 0"}},{"ph":"M","name":"thread_name","pid":0,"tid":1,"args":{"name":"rank 1"}}`
	for text, want := range map[string]int{
		names: 0,
		names + `,{"ph":"X","name":"a","pid":0,"tid":1,"ts":5,"dur":9000},{"ph":"X","name":"b","pid":0,"tid":1,"ts":6,"dur":3}`:      0,
		names + `,{"ph":"X","name":"a","pid":0,"tid":1,"ts":5,"dur":9000},{"ph":"X","name":"b","pid":0,"tid":1,"ts":600,"dur":9000}`: 1,
		names + `,{"ph":"X","name":"a","pid":0,"tid":1,"ts":5,"dur":-1}`:                                                             1,
		names + `,{"ph":"X","name":"a","pid":0,"tid":2,"ts":5,"dur":1}`:                                                              2,
		names + `,{"ph":"i","name":"a","pid":0,"tid":1,"ts":5}`:                                                                      1,
		names + "," + names: 2,
		names + `,{"ph":"B","name":"a","pid":0,"tid":1,"ts":5}`: 1,
		names + `,{"ph":"B","name":"a","pid":0,"tid":1,"ts":5},{"ph":"E","name":"a","pid":0,"tid":1,"ts":6},{"ph":"E","name":"a","pid":0,"tid":1,"ts":7}`: 1,
		names + `,{"ph":"s","name":"a","pid":0,"tid":1,"ts":5,"id":7},{"ph":"f","name":"a","pid":0,"tid":1,"ts":5,"id":7}`:                                0,
		names + `,{"ph":"s","name":"a","pid":0,"tid":1,"ts":5,"id":7},{"ph":"s","name":"a","pid":0,"tid":1,"ts":5,"id":7}`:                                2,
		names + `,{"ph":"f","name":"a","pid":0,"tid":1,"ts":5,"id":7}`:                                                                                    1,
		names + `,{"ph":"?","name":"a","pid":0,"tid":1,"ts":5}`:                                                                                           1,
	} {
		if got := traceFaults([]byte("[" + text + "]")); len(got) != want {
			t.Errorf("%d faults, want %d: %v in %s", len(got), want, got, text)
		}
	}
}
