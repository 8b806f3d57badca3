package node

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/openimpi/impi/config"
)

var stepLine = regexp.MustCompile(`(?m)^(accept|connect|spawn)(?:#1)? step (\d+): \S`)

// stepHead is the head of a record of a step in a capture, up to its kind.
var stepHead = []byte{0xb6, 0xb2, 0xaf, 0xb6, 1, 3}

// tracedSteps returns the steps that a trace shows, which is text or a capture: "accept 3".
func tracedSteps(t *testing.T, path string) (list []string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range stepLine.FindAllSubmatch(b, -1) {
		list = append(list, fmt.Sprintf("%s %s", m[1], m[2]))
	}
	for _, record := range bytes.Split(b, stepHead)[1:] {
		record = record[24-len(stepHead):]
		number, n := int32(binary.BigEndian.Uint32(record)), int(record[4])
		kind, _, _ := bytes.Cut(record[5:5+n], []byte("#"))
		if number >= 0 {
			list = append(list, fmt.Sprintf("%s %d", kind, number))
		}
	}
	return list
}

// taken are steps of procedures, which are named before their numbers.
func taken(parts ...any) (list []string) {
	kind := ""
	for _, x := range parts {
		switch x := x.(type) {
		case string:
			kind = x
		case int:
			list = append(list, fmt.Sprintf("%s %d", kind, x))
		case []int:
			for _, n := range x {
				list = append(list, fmt.Sprintf("%s %d", kind, n))
			}
		}
	}
	return list
}

// The steps of roots from the temporary link on, and of the others.
var (
	stepsOfRoot   = []int{5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	stepsOfMember = []int{5, 6, 8, 10, 12, 13, 15}
)

// wantSteps compares a job's traces with what each rank does.
func wantSteps(t *testing.T, pattern string, want ...[]string) {
	t.Helper()
	for rank, steps := range want {
		if got := tracedSteps(t, fmt.Sprintf(pattern, rank)); !slices.Equal(got, steps) {
			t.Errorf("%s: %q, want %q", fmt.Sprintf(pattern, rank), got, steps)
		}
	}
}

// traced gives all procs of a job a trace.
func traced(job *config.Job, path string) *config.Job {
	for i := range job.Sites {
		job.Sites[i].Log.Trace = path
	}
	return job
}

// TestJobsThatMeetAreTraced connects two jobs of two sites: the traces have each step of
// each proc, as text on one side and as captures on the other.
func TestJobsThatMeetAreTraced(t *testing.T) {
	_, shared := sharedNames(t)
	dir := t.TempDir()
	job := func(mode, trace string, procs ...int) *config.Job {
		j := with(testJob(mode, procs...), serviceVariable, "heat", timesVariable, "1")
		shared(j)
		return traced(j, filepath.Join(dir, trace))
	}
	a, b := start(t, job("accepts", "a-%r.txt", 2, 1)), start(t, job("connects", "b-%r.pcapng", 1, 1))
	wantNone(t, a)
	wantNone(t, b)
	accepts, connects := taken("accept", stepsOfMember), taken("connect", stepsOfMember)
	wantSteps(t, filepath.Join(dir, "a-%d.txt"), taken("accept", 0, 3, 4, stepsOfRoot), accepts, accepts)
	wantSteps(t, filepath.Join(dir, "b-%d.pcapng"), taken("connect", 1, 2, stepsOfRoot), connects)
}

// TestSpawnIsTraced is the same for a spawn by rank 1.
func TestSpawnIsTraced(t *testing.T) {
	for _, form := range []string{"txt", "pcapng"} {
		t.Run(form, func(t *testing.T) {
			dir := t.TempDir()
			job := spawnJob([]order{{Commands: []ordered{{Mode: "child", Procs: 2}}, Root: 1}}, 2)
			wantNone(t, start(t, traced(job, filepath.Join(dir, "%r."+form))))
			wantSteps(t, filepath.Join(dir, "%d."+form),
				taken("spawn", 3, 4, 5, "accept", stepsOfMember, "spawn", 6, 7),
				taken("accept", 0, "spawn", 1, 2, 3, 4, 5, "accept", 3, 4, stepsOfRoot, "spawn", 6, 7))
			wantSteps(t, filepath.Join(dir, "spawn1.%d."+form),
				taken("spawn", 3, 4, "connect", 1, 2, stepsOfRoot, "spawn", 6, 7),
				taken("spawn", 3, 4, "connect", stepsOfMember, "spawn", 6, 7))
		})
	}
}
