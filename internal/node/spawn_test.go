package node

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/launch/launchtest"
	"github.com/openimpi/impi/internal/lifetime"
	"github.com/openimpi/impi/internal/transcript"
	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
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

// spawns is an order of one command of the test binary.
func spawns(mode string, procs int) order {
	return order{Commands: []ordered{{Mode: mode, Procs: procs}}}
}

// countLines counts the whole lines that match.
func countLines(s *transcript.Writer, pattern string) int {
	return len(regexp.MustCompile(`(?m)^`+pattern+`$`).FindAllString(s.String(), -1))
}

func wantLines(t *testing.T, s *transcript.Writer, lines map[string]int) {
	t.Helper()
	for pattern, n := range lines {
		if got := countLines(s, pattern); got != n {
			t.Errorf("%d lines %s, want %d", got, pattern, n)
		}
	}
}

// wantNothingLeft wants no slot to be taken of sites that have ended, and their
// directory to be empty.
func wantNothingLeft(t *testing.T, all []*running) {
	t.Helper()
	for _, r := range all {
		if slots, parts := r.n.spawner.InUse(); slots != 0 || parts != 0 {
			t.Errorf("%d slots are taken, %d parts of worlds are left", slots, parts)
		}
		left, err := filepath.Glob(filepath.Join(r.n.opt.RunBase, "impi-*", "[0-9]*"))
		if err != nil || len(left) != 0 {
			t.Errorf("left: %v %v", left, err)
		}
	}
}

func TestSpawn(t *testing.T) {
	for _, name := range []string{"tcp", "shm", "unix", "quic"} {
		t.Run(name, func(t *testing.T) {
			job := spawnJob([]order{{Commands: []ordered{{Mode: "child", Procs: 3, Args: []string{"a", "b c"}}}, Root: 1}}, 2)
			switch name {
			case "shm":
				job.Sites[0].Transports = append(job.Sites[0].Transports, config.Transport{Name: "shm", Builtin: true})
			case "quic":
				ca := pkitest.Authority(t)
				withTransport(job, name, func(site string) map[string]any { return pkitest.Site(t, site, ca, ca, nil) })
			}
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
			wantNothingLeft(t, all)
		})
	}
}

// TestSpawnInfo has several commands in one world, each with its own place, variables
// and number of procs.
func TestSpawnInfo(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "worker")); err != nil {
		t.Fatal(err)
	}
	job := spawnJob([]order{{Commands: []ordered{
		{Mode: "child", Procs: 1, Info: map[string]string{"wdir": dir, "env": "EXTRA=one", "host": "localhost", "arch": runtime.GOARCH}},
		{Mode: "child", Procs: 6, Path: "worker", Info: map[string]string{"path": "/nowhere:" + dir, "soft": "1:6:2", "unheard-of": "x"}},
		{Mode: "child", Procs: 2, Info: map[string]string{"host": "127.0.0.2"}},
	}}}, 1)
	job.Sites[0].Spawn.Slots = 7 // 1, then 5 of 6 by soft leaves 1 of 2
	job.Sites[0].Spawn.Allow = []string{self, dir + "/*"}
	all := start(t, job)
	wantNone(t, all)
	wantLines(t, all[0].out, map[string]int{`\[0\] codes .* class MPI_ERR_SPAWN error .*command 2 .*7 slots of site alpha for spawned procs 6 are taken, and it needs 2 more`: 1})

	job.Sites[0].Spawn.Slots = 8
	all = start(t, job)
	wantNone(t, all)
	ok := "MPI_SUCCESS"
	wantLines(t, all[0].out, map[string]int{
		`\[0\] codes \[` + strings.TrimSpace(strings.Repeat(ok+" ", 6)) + ` MPI_ERR_SPAWN ` + ok + ` ` + ok + `\] children 8`: 1,
		`\[spawn1\.0\] child 0 of 8 appnum 0 .* in ` + dir + ` extra one`:                                                     1,
		`\[spawn1\.[1-5]\] child . of 8 appnum 1 .* in / extra `:                                                              5,
		`\[spawn1\.[67]\] child . of 8 appnum 2 .* in / extra `:                                                               2,
	})
	wantNothingLeft(t, all)
}

// TestSpawnFails has spawns fail, each of which leaves nothing behind, and the job
// go on to the next.
func TestSpawnFails(t *testing.T) {
	good := ordered{Mode: "child", Procs: 1}
	orders := []order{
		{Commands: []ordered{good, {Path: "/nowhere/prog", Procs: 2}}},
		{Commands: []ordered{{Mode: "child", Procs: 1, Info: map[string]string{"host": "nebula"}}}},
		{Commands: []ordered{{Mode: "child", Procs: 1, Info: map[string]string{"arch": "pdp11"}}}},
		{Commands: []ordered{{Mode: "child", Procs: 9}}},
		{Commands: []ordered{good, {Mode: "no-init", Procs: 2}}},
		{Commands: []ordered{{Mode: "no-call", Procs: 2}}},
		{Commands: []ordered{{Mode: "call-dies", Procs: 1}}},
		{Commands: []ordered{{Path: "/etc/passwd", Procs: 1}}},
		{Commands: []ordered{good}},
	}
	all := start(t, spawnJob(orders, 2))
	wantNone(t, all)
	for _, line := range []string{
		`codes \[MPI_ERR_OTHER MPI_ERR_SPAWN MPI_ERR_SPAWN\] class MPI_ERR_SPAWN error .*command 1 \(/nowhere/prog\): there is no program.*`,
		`codes \[MPI_ERR_SPAWN\] class MPI_ERR_SPAWN error .*no site or host "nebula" in the job, which has alpha`,
		`codes \[MPI_ERR_SPAWN\] class MPI_ERR_SPAWN error .*arch is "pdp11".*`,
		`codes \[MPI_ERR_SPAWN( MPI_ERR_SPAWN){8}\] class MPI_ERR_SPAWN error .*8 slots.*needs 9 more`,
		`codes \[MPI_ERR_OTHER MPI_ERR_SPAWN MPI_ERR_SPAWN\] class MPI_ERR_SPAWN error .*command 1 .* exited with status 3 before it called MPI Init`,
		`codes \[MPI_SUCCESS MPI_SUCCESS\] class MPI_ERR_SPAWN error .*`,
		`codes \[MPI_SUCCESS\] class MPI_ERR_SPAWN error .*`,
		`codes \[MPI_ERR_SPAWN\] class MPI_ERR_SPAWN error .*"/etc/passwd" is not executable.*`,
		`codes \[MPI_SUCCESS\] children 1`,
	} {
		if n := countLines(all[0].out, `\[[01]\] `+line); n != 2 {
			t.Errorf("%d lines %s", n, line)
		}
	}
	wantNothingLeft(t, all)
}

// TestSpawnWaitsInVain has procs that never call Init, and some that never call their
// parents.
func TestSpawnWaitsInVain(t *testing.T) {
	for mode, want := range map[string]string{
		"never-init": `.*%v passed while waiting for MPI Init of proc 0 of site alpha, spawn1.*`,
		"never-call": `.*%v passed before spawn1 and its parents had connected`,
	} {
		t.Run(mode, func(t *testing.T) {
			var all []*running
			f, limit := endsInTime(t, 2*time.Second, func(limit time.Duration) *ending.Failure {
				job := spawnJob([]order{spawns(mode, 1)}, 1)
				job.Limits.Start = limit
				all = start(t, job)
				f := end(all)[0]
				if late := tooLate + " 0 of site alpha, spawn1"; f == nil && mode == "never-call" && strings.Contains(all[0].out.String(), late) {
					return &ending.Failure{Text: late} // the child was not there either
				}
				return f
			})
			if f != nil {
				t.Error(f)
			}
			wantLines(t, all[0].out, map[string]int{`\[0\] codes .* class MPI_ERR_SPAWN error` + fmt.Sprintf(want, limit): 1})
			wantNothingLeft(t, all)
		})
	}
}

// TestSpawnSlotsComeBack spawns again as soon as the last ones have been left.
func TestSpawnSlotsComeBack(t *testing.T) {
	var orders []order
	for range 5 {
		orders = append(orders, spawns("child", 3))
	}
	job := spawnJob(orders, 1)
	job.Sites[0].Spawn.Slots = 4
	all := start(t, job)
	wantNone(t, all)
	wantLines(t, all[0].out, map[string]int{`\[0\] codes .* children 3`: 5})
	wantNothingLeft(t, all)
}

func TestSpawnedSpawn(t *testing.T) {
	all := start(t, spawnJob([]order{spawns("grandparent", 2)}, 1))
	wantNone(t, all)
	wantLines(t, all[0].out, map[string]int{
		`\[spawn1\.[01]\] codes .* children 2`: 2,
		`\[spawn2\.[01]\] merged 4`:            2,
		`\[spawn1\.[01]\] merged 3`:            2,
		`\[0\] all done`:                       1,
	})
	wantNothingLeft(t, all)
}

// TestSpawnElsewhere spawns at other sites of the job, in a world of procs of both.
func TestSpawnElsewhere(t *testing.T) {
	far := map[string]string{"host": "beta"}
	orders := []order{
		{Commands: []ordered{{Mode: "child", Procs: 2, Info: far}, {Mode: "child", Procs: 1}, {Mode: "child", Procs: 2, Info: map[string]string{"host": "127.0.0.3"}}}},
		{Commands: []ordered{{Mode: "child", Procs: 9, Info: far}}},
		{Commands: []ordered{{Mode: "child", Procs: 1}, {Path: "/bin/sh", Procs: 1, Info: far}}},
		{Commands: []ordered{{Mode: "child", Procs: 1, Info: map[string]string{"host": "beta", "soft": "0:1"}}, {Mode: "child", Procs: 1}}},
		{Commands: []ordered{{Mode: "child", Procs: 1, Info: map[string]string{"host": "alpha"}}}, Root: 1},
	}
	job := spawnJob(orders, 1, 1)
	self := job.Sites[1].Program.Path
	job.Sites[1].Spawn.Allow = []string{self}
	// What guests run has the environment of the site where it runs.
	job.Sites[1].Program.Env["IMPI_TEST_MODE"] = "either"
	all := start(t, job)
	wantNone(t, all)
	wantLines(t, all[0].out, map[string]int{
		`\[0\] codes \[MPI_SUCCESS( MPI_SUCCESS){4}\] children 5`:                                                                               1,
		`\[alpha\.spawn1\.2\] child 2 of 5 appnum 1 .*`:                                                                                         1,
		`\[0\] codes .* class MPI_ERR_SPAWN error .*8 slots of site beta.*`:                                                                     1,
		`\[0\] codes \[MPI_ERR_OTHER MPI_ERR_SPAWN\] .*command 1 \(/bin/sh\): /bin/sh is not in the allow list of the spawn block of site beta`: 1,
		`\[0\] codes .* class MPI_ERR_SPAWN error .*lets no other site spawn.*`:                                                                 1,
	})
	wantLines(t, all[1].out, map[string]int{
		`\[alpha\.spawn1\.[01]\] child [01] of 5 appnum 0 .*`:                   2,
		`\[alpha\.spawn1\.[34]\] child [34] of 5 appnum 2 .*`:                   2,
		`\[alpha\.spawn1\.[0134]\] merged 7`:                                    4,
		`\[1\] codes .* class MPI_ERR_SPAWN error .*lets no other site spawn.*`: 1,
	})
	wantNothingLeft(t, all)
}

// TestSpawnedFails has the end of spawned procs be that of the job, or not, if they
// have parted.
func TestSpawnedFails(t *testing.T) {
	for _, tt := range []struct {
		order  order
		text   string
		status int
	}{
		{order{Commands: []ordered{{Mode: "fails", Procs: 1}}, Keep: true, Stop: "hang"}, "alpha.spawn1, which rank 0 on site alpha has spawned, failed: rank 0 on site alpha, alpha.spawn1 exited with status 17", 17},
		{order{Commands: []ordered{{Mode: "aborts", Procs: 1}}, Keep: true, Stop: "hang"}, "alpha.spawn1, which rank 0 on site alpha has spawned, failed: rank 0 on site alpha, alpha.spawn1 called MPI Abort with code 19: the child has had enough", 19},
	} {
		t.Run(tt.order.Commands[0].Mode, func(t *testing.T) {
			all := start(t, spawnJob([]order{tt.order}, 1, 1))
			f := wantSome(t, all, tt.text)
			if f != nil && f.Status != tt.status {
				t.Errorf("status %d", f.Status)
			}
			wantNothingLeft(t, all)
		})
	}
	t.Run("parted", func(t *testing.T) {
		all := start(t, spawnJob([]order{spawns("fails-free", 1)}, 1))
		wantNone(t, all)
		if !strings.Contains(all[0].err.String(), "had disconnected from its parents has failed") {
			t.Error(all[0].err.String())
		}
	})
}

// wantSome wants the first site to end with a failure of that text, and the others to
// be told.
func wantSome(t *testing.T, all []*running, text string) *ending.Failure {
	t.Helper()
	failures := end(all)
	for i, f := range failures {
		if f == nil || !strings.Contains(f.Text, text) {
			t.Errorf("site %d ended with %q, want %q", i, fmt.Sprint(f), text)
		}
	}
	return failures[0]
}

// TestParentsEnd ends the job of the parents while it spawns, and when it has.
func TestParentsEnd(t *testing.T) {
	t.Run("while children start", func(t *testing.T) {
		all := start(t, spawnJob([]order{spawns("never-init", 2)}, 1))
		child := launchtest.Pidfd(t, all[0].out.Number(t, "[spawn1.alpha.1] pid "))
		kill(t, all[0].out.Number(t, "[0] pid "))
		wantAll(t, all, "rank 0 on site alpha was killed by SIGKILL")
		launchtest.AwaitEnd(t, child)
		wantNothingLeft(t, all)
	})
	t.Run("connected", func(t *testing.T) {
		dies := spawns("steady", 2)
		dies.Stop = "die"
		all := start(t, spawnJob([]order{dies}, 1))
		child := launchtest.Pidfd(t, all[0].out.Number(t, "[spawn1.0] pid "))
		wantAll(t, all, "rank 0 on site alpha was killed by SIGKILL")
		launchtest.AwaitEnd(t, child)
		wantNothingLeft(t, all)
	})
	t.Run("at another site", func(t *testing.T) {
		stays := spawns("steady", 2)
		stays.Stop = "hang"
		all := start(t, spawnJob([]order{stays}, 1, 1))
		child := launchtest.Pidfd(t, all[0].out.Number(t, "[alpha.spawn1.0] pid "))
		all[0].out.Line(t, "[alpha.spawn1.1] steady")
		kill(t, all[1].out.Number(t, "[1] pid "))
		wantAll(t, all, "rank 1 on site beta was killed by SIGKILL")
		launchtest.AwaitEnd(t, child)
		wantNothingLeft(t, all)
	})
	t.Run("parted", func(t *testing.T) {
		all := start(t, spawnJob([]order{spawns("free", 1)}, 1))
		child := all[0].out.Number(t, "[spawn1.0] pid ")
		all[0].err.Await("the job is over; what it has spawned goes on", 1)
		kill(t, child)
		wantNone(t, all)
		wantNothingLeft(t, all)
	})
	t.Run("by the operator", func(t *testing.T) {
		all := start(t, spawnJob([]order{spawns("free", 1)}, 1))
		child := launchtest.Pidfd(t, all[0].out.Number(t, "[spawn1.0] pid "))
		all[0].err.Await("the job is over; what it has spawned goes on", 1)
		all[0].cancel(lifetime.Interrupt{Signal: unix.SIGTERM})
		if f := end(all)[0]; f == nil || f.Status != 128+int(unix.SIGTERM) {
			t.Errorf("%v", f)
		}
		launchtest.AwaitEnd(t, child)
		wantNothingLeft(t, all)
	})
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Error(err)
	}
}
