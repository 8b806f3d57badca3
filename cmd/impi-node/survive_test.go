package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/loopback"
)

// losesSite has rank lost kill the node of its site, and each other proc see that it is lost and talk to
// those that are left.
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

// TestSiteIsLostAndTheJobGoesOn: a site whose node is killed is lost; the others finish, and the last
// line and the status are about it. The job's server is not lost with a site that embeds it.
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

// TestSiteWithTheServerIsLost: so it is if each site has an impi-node of its own, and that with the job's
// server is killed.
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
