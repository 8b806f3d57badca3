package performance

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// answer is figures as impi-bench prints them.
func answer(t *testing.T, question, figures string) Answer {
	t.Helper()
	f, err := Parse([]byte(figures))
	if err != nil {
		t.Fatal(err)
	}
	return Answer{Question: question, Command: []string{"impi-bench", "x"}, Figures: f}
}

// Each row is judged by itself, beside the better peer, whichever way its unit counts.
func TestRowsAreJudged(t *testing.T) {
	a := answer(t, "shm", `{"repeat": 5, "results": [
		{"benchmark": "pingpong", "unit": "us", "procs": 2, "rows": [
			{"size": 8, "values": {"impi": 2, "impi in C": 1, "mpich": 1, "openmpi": 4}, "spreads": {"impi": 0.1}},
			{"size": 64, "values": {"impi": 2, "impi in C": 2, "openmpi": 1}, "spreads": {"impi": 0.3}}]},
		{"benchmark": "allreduce", "unit": "us", "procs": 2, "rows": [
			{"size": 8, "values": {"impi": 2, "impi in C": 2, "openmpi": 1}, "spreads": {"impi": 0.2}}]},
		{"benchmark": "rate", "unit": "k/s", "procs": 2, "rows": [
			{"size": 8, "values": {"impi": 60, "impi in C": 300, "mpich": 50, "openmpi": 100}, "spreads": {"impi": 0.2}}]},
		{"benchmark": "overlap", "unit": "%", "procs": 2, "rows": [
			{"size": 8, "values": {"impi": 10, "impi in C": 30, "mpich": 5, "openmpi": 20}, "spreads": {"impi": 0.2}}]}]}`)
	var b bytes.Buffer
	if err := Write(&b, []Answer{a}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"**2 of 6 goals are met**",
		"* How fast are messages between two procs of a machine: impi, pingpong 8 B: 0.500, ≥ 0.8 wanted\n",
		"| pingpong, us | 8 B | 2 | **0.50, not ≥ 0.8** | 1 | 1.00, ≥ 0.8 | 1 | 4 |",
		"|  | 64 B | 2 | **0.50, not ≥ 0.8** | 2 | **0.50, not ≥ 0.8** |  | 1 |",
		"| allreduce, us | 8 B | 2 | 0.50 | 2 | 0.50 |  | 1 |", // it has no goal
		"| rate, k/s | 8 B | 60 | **0.60, not ≥ 0.8** | 300 | 3.00, ≥ 0.8 | 50 | 100 |",
		"| overlap, % | 8 B | 10 | 0.50 | 30 | 1.50 | 5 | 20 |", // hiding more is better
		"are 20 % in\nthe median and at most 30 %",              // wrapped at 100 columns
		"Not measured: `make performance ONLY=tcp`",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// A variant's ratio is that of the turns, with its interval.
func TestVariantsAreJudged(t *testing.T) {
	a := answer(t, "resume", `{"repeat": 7, "results": [{"benchmark": "stream", "unit": "MB/s", "procs": 2, "rows": [
		{"size": 1048576, "values": {"impi": 100, "resume": 90}, "ratios": {"resume": 1.031}, "intervals": {"resume": [1.01, 1.05]}, "spreads": {"impi": 0.1}},
		{"size": 4096, "values": {"impi": 100, "resume": 90}, "ratios": {"resume": 1.02}, "spreads": {"impi": 0.1}}]}]}`)
	var b bytes.Buffer
	if err := Write(&b, []Answer{a}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| stream, MB/s | 1 MiB | 100 | 90 | **1.031 (1.010 to 1.050), not ≤ 1.03** |", "| 4 KiB | 100 | 90 | 1.02, ≤ 1.03 |", "**1 of 2 goals are met**",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestNoFigures(t *testing.T) {
	for _, bad := range []string{"", "{}", `{"results": []}`, "impi-bench: no"} {
		if f, err := Parse([]byte(bad)); err == nil {
			t.Errorf("%q gives %v", bad, f)
		}
	}
	if err := Write(&bytes.Buffer{}, nil); err == nil {
		t.Error("a page without figures is written")
	}
}

// Every goal is about a row that its question has.
func TestGoalsAreOfRows(t *testing.T) {
	for _, q := range Questions {
		for _, g := range q.Goals {
			group := false
			for name, benches := range map[string][]string{"collectives": collectives, "nonblocking": nonblocking, "onesided": onesided} {
				group = group || slices.Contains(q.Args, name) && slices.Contains(benches, g.Bench)
			}
			bench, way, _ := strings.Cut(g.Bench, " by ") // which -on has
			group = group || way != "" && slices.Contains(q.Args, bench) && strings.Contains(strings.Join(q.Args, " "), "-on ") && strings.Contains(strings.Join(q.Args, ","), way)
			if !slices.Contains(q.Args, g.Bench) && !group || (g.Least == 0) == (g.Most == 0) {
				t.Errorf("%s: %+v", q.Name, g)
			}
			known := len(q.Of) > 0 && slices.Contains(q.Of, g.Of)
			if beside := strings.Join(q.Args, " "); !known && !strings.Contains(beside, g.Of) {
				t.Errorf("%s: no column %s", q.Name, g.Of)
			}
		}
	}
}
