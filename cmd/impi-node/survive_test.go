package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/loopback"
	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
)

// losesSite has rank lost kill the node of its site, and each other proc see that it is lost and
// talk to those that are left.
func losesSite(lost int) {
	w := mpi.World()
	if w.Rank() == lost {
		if err := syscall.Kill(os.Getppid(), syscall.SIGKILL); err != nil {
			panic(err)
		}
		hang()
	}
	if _, err := mpi.Recv(w, make([]int64, 1), lost, 0); !errors.Is(err, mpi.ErrProcFailed) {
		panic(fmt.Sprint("not the loss of a proc: ", err))
	}
	for r := range w.Size() {
		if r == lost || r == w.Rank() {
			continue
		}
		if _, err := mpi.Sendrecv(w, []int64{1}, r, 1, make([]int64, 1), r, 1); err != nil {
			panic(err)
		}
	}
	os.Stdout.WriteString("went on\n")
}

// TestSiteIsLostAndTheJobGoesOn: a site whose node is killed is lost; the others finish, and the
// last line and the status are about it. The job's server is not lost with a site that embeds it.
func TestSiteIsLostAndTheJobGoesOn(t *testing.T) {
	three := strings.Replace(twoSites, "embedded_server {}", "embedded_server {}\n  survive = true\n", 1) + `
site "gamma" {
  client = 2
  host { address = "127.0.0.4"  procs = 1 }
}`
	for lost, name := range []string{"alpha (client 0)", "beta (client 1)"} {
		status, out, err := impiNode(t, fmt.Sprint("loses site ", lost), "-config", file(t, three))
		lines := strings.Split(strings.TrimSpace(err), "\n")
		want := "site " + name + ": its node was killed by SIGKILL; the job went on without it"
		if status != 137 || strings.Count(out, "went on") != 2 || !strings.Contains(lines[len(lines)-1], want) {
			t.Errorf("site %s: status %d, %q, %s", name, status, out, err)
		}
		// Both nodes that are left have heard of it. One of them says why, without words of the protocol.
		warned := regexp.MustCompile(`the job goes on without procs that are lost: first_rank=\d last_rank=\d reason="?site ` + regexp.QuoteMeta(name) + ` at [^ ]+ is lost: its connection has (ended without a word|broken: .*): see on that machine`)
		if n := strings.Count(err, "goes on without procs that are lost"); n != 1 || !warned.MatchString(err) || strings.Contains(err, "EOF") {
			t.Errorf("site %s: %d warnings in\n%s\nwant %s", name, n, err, warned)
		}
	}
}

// TestSiteWithTheServerIsLost: so it is if each site has an impi-node of its own, and that with the
// job's server is killed.
func TestSiteWithTheServerIsLost(t *testing.T) {
	server, e := loopback.Free()
	if e != nil {
		t.Fatal(e)
	}
	job := strings.Replace(twoSites, "embedded_server {}", fmt.Sprintf("embedded_server { listen = %q }\n  survive = true", server), 1)
	path := file(t, strings.Replace(job, "job {", "job {\n auth \"key\" { env = \"KEY\" }", 1))
	t.Setenv("KEY", "4711")
	alpha, _, _ := command(t, "loses site 0", "-config", path, "-site", "alpha")
	if e := alpha.Start(); e != nil {
		t.Fatal(e)
	}
	status, out, err := impiNode(t, "loses site 0", "-config", path, "-site", "beta")
	_ = alpha.Wait() // it is killed
	if status != ending.StatusRemote || !strings.Contains(out, "went on") || !strings.Contains(err, "; the job went on without it") {
		t.Errorf("status %d, %q, %s", status, out, err)
	}
}

// stoppedFor is how long a process is stopped: longer than the silence after which a machine is
// lost.
const stoppedFor = 6 * time.Second

// stopsSite has rank 0 stop, one after the other, the proc of the other site, its node, and all
// processes of the site, each of them longer than a machine may be silent. None is taken for lost,
// and what was sent meanwhile arrives.
func stopsSite() {
	w := mpi.World()
	world := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	if w.Rank() == 1 {
		world(mpi.Send(w, []int64{int64(os.Getpid()), int64(os.Getppid())}, 0, 0))
		for range 3 {
			in := make([]int64, 1)
			_, err := mpi.Recv(w, in, 0, 1)
			world(err)
			world(mpi.Send(w, in, 0, 2))
		}
		return
	}
	in := make([]int64, 2)
	_, err := mpi.Recv(w, in, 1, 0)
	world(err)
	proc, node := int(in[0]), int(in[1])
	for i, who := range []struct {
		name string
		pids []int
	}{{"the proc", []int{proc}}, {"its node", []int{node}}, {"all processes of its site", treeOf(node)}} {
		q, err := whileStopped(w, who.pids, int64(i))
		world(err)
		_, err = mpi.Recv(w, in[:1], 1, 2)
		world(err)
		_, err = q.Wait()
		world(err)
		fmt.Printf("not suspected: %s (%d)\n", who.name, len(who.pids))
	}
}

// whileStopped stops processes, begins to send a message, and looks whether its receiver is taken
// for lost. They go on whatever comes of it.
func whileStopped(w *mpi.Comm, pids []int, message int64) (q mpi.Request, err error) {
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return q, err
		}
		defer syscall.Kill(pid, syscall.SIGCONT) //nolint:errcheck // the test sees it
	}
	if q, err = mpi.Isend(w, []int64{message}, 1, 1); err != nil {
		return q, err
	}
	const looks = 50
	for range looks {
		<-time.After(stoppedFor / looks)
		if _, _, err := mpi.Iprobe(w, 1, 2); err != nil {
			return q, err
		}
	}
	return q, nil
}

// treeOf are a process and those that it has started, and those that these have.
func treeOf(pid int) []int {
	all := []int{pid}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for i := 0; i < len(all); i++ {
		for _, name := range stats {
			text, err := os.ReadFile(name)
			_, rest, ok := strings.Cut(string(text), ") ")
			if fields := strings.Fields(rest); err == nil && ok && len(fields) > 1 && fields[1] == strconv.Itoa(all[i]) {
				if child, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
					all = append(all, child)
				}
			}
		}
	}
	return all
}

// TestStoppedIsNotLost: processes that are stopped for longer than the limit of silence are not
// taken for lost. By tcp the kernel answers for them: it asks three times within 4 s, and only once
// within less. By quic, where a plugin answers itself, links break and are resumed.
func TestStoppedIsNotLost(t *testing.T) {
	t.Setenv("CERTS", certificatesOn(t, pkitest.Authority(t), time.Now()))
	for name, routes := range map[string]string{
		"tcp":  `route "*" { prefer = ["tcp"] }`,
		"quic": overQUIC,
	} {
		t.Run(name, func(t *testing.T) {
			job := strings.Replace(twoSites, "embedded_server {}", "embedded_server {}\n  survive = true\n", 1) + routes + `
limits {
  start   = "5m"
  silence = "4s"
  resume  = "1m"
}
`
			status, out, err := impiNode(t, "stops a site", "-config", file(t, job))
			if status != 0 || strings.Count(out, "not suspected: ") != 3 {
				t.Errorf("status %d, %q, %s", status, out, err)
			}
		})
	}
}
