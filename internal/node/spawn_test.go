package node

import (
	"regexp"
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
)

// spawnJob is a job whose procs spawn.
func spawnJob(orders []order, procs ...int) *config.Job {
	job := testJob("spawn", procs...)
	for i := range job.Sites {
		job.Sites[i].Program.Env = spawnOrders(orders...)
		job.Sites[i].Spawn = config.Spawn{Slots: 8}
	}
	return job
}

// count counts the lines of a site's output that match.
func (s *screen) count(pattern string) int {
	return len(regexp.MustCompile(`(?m)^`+pattern+`$`).FindAllString(s.String(), -1))
}

func wantLines(t *testing.T, s *screen, lines map[string]int) {
	t.Helper()
	for pattern, n := range lines {
		if got := s.count(pattern); got != n {
			t.Errorf("%d lines %s, want %d", got, pattern, n)
		}
	}
	if t.Failed() {
		t.Log(s.String())
	}
}

func TestSpawn(t *testing.T) {
	for _, name := range []string{"tcp", "shm", "unix"} {
		t.Run(name, func(t *testing.T) {
			job := spawnJob([]order{{Commands: []ordered{{Mode: "child", Procs: 3, Args: []string{"a", "b c"}}}, Root: 1}}, 2)
			job.Sites[0].Transports = append(job.Sites[0].Transports, config.Transport{Name: "shm", Builtin: true})
			all := start(t, route(job, config.Route{Prefer: []string{name}, Direct: true}))
			wantNone(t, all)
			wantLines(t, all[0].out, map[string]int{
				`\[[01]\] codes \[MPI_SUCCESS MPI_SUCCESS MPI_SUCCESS\] children 3`: 2,
				`\[[01]\] merged 5`:          2,
				`\[spawn1\.[0-2]\] merged 5`: 3,
				`\[spawn1\.[0-2]\] child [0-2] of 3 appnum 0 true parent MPI_COMM_PARENT args \[a b c\] in / extra `: 3,
				`\[spawn1\.0\] token .*`: 2,
				`\[0\] all done`:         1,
			})
			if strings.Contains(all[0].err.String(), "WARN") {
				t.Error(all[0].err.String())
			}
		})
	}
}
