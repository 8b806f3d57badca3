package node

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/links"
)

// withMemory adds the transport by shared memory.
func withMemory(job *config.Job) *config.Job {
	s := &job.Sites[0]
	s.Transports = append(s.Transports, config.Transport{Name: "shm", Builtin: true})
	return job
}

// Who waits on the board ends with the job when the proc that is waited for is killed.
func TestProcKilledWhileOthersWaitOnTheBoard(t *testing.T) {
	all := start(t, withMemory(route(testJob("board", 3), config.Route{Prefer: []string{"shm"}, Direct: true})))
	pid := all[0].out.Number(t, "[1] pid ")
	all[0].out.Line(t, "[0] pid")
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wantAll(t, all, "rank 1 on site alpha was killed by SIGKILL")
}

// Procs get a board where they would be linked by shared memory, and the report of
// links says why not.
func TestBoards(t *testing.T) {
	shared := config.Route{Prefer: []string{"shm", "tcp"}, Direct: true}
	for name, x := range map[string]struct {
		route config.Route
		procs int
		off   bool
		want  string
	}{
		"shared memory": {shared, 2, false, ""},
		"switched off":  {shared, 2, true, "board = false"},
		"alone":         {shared, 1, false, "there is one proc"},
		"tcp":           {config.Route{Prefer: []string{"tcp", "shm"}, Direct: true}, 2, false, "links of its procs are not of shared memory"},
		"by agents":     {config.Route{Prefer: []string{"shm"}}, 2, false, "links of its procs are not of shared memory"},
	} {
		job := withMemory(route(testJob("linked", x.procs), x.route))
		job.Sites[0].Hosts[0].NoBoard = x.off
		_, j := survey(t, start(t, job), links.Request{})
		if got := j.Sites[0].Agents[0].NoBoard; got != x.want {
			t.Errorf("%s: no board as %q, want %q", name, got, x.want)
		}
	}
}
