package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/openimpi/impi/core/mpi"
)

// secondLosses are what a job may lose that has replaced a proc by two spawned ones: who of the
// team of ranks 0 to 2 of the job and ranks 3 and 4 that were spawned, and where the latter are.
var secondLosses = map[string]struct {
	at   string
	lost []int
	node bool   // the first of them kills its node, and so all of them
	last string // the last line of the job; spawned procs are not counted
}{
	"child":    {at: "alpha", lost: []int{4}, last: rankThree + "; the job went on without it"},
	"leader":   {at: "beta", lost: []int{3}, last: rankThree + "; the job went on without it"},
	"children": {at: "beta", lost: []int{3, 4}, last: rankThree + "; the job went on without it"},
	"parent":   {at: "alpha", lost: []int{1}, last: rankThree + "; 2 procs are lost in all; the job went on without them"},
	"root":     {at: "beta", lost: []int{0}, last: rankThree + "; 2 procs are lost in all; the job went on without them"},
	"beta":     {at: "alpha", lost: []int{2}, node: true, last: siteBeta},
	"alpha":    {at: "beta", lost: []int{0, 1}, node: true, last: "site alpha (client 0): its node was killed by SIGKILL; 3 procs are lost in all; the job went on without them"},
	"both":     {at: "beta", lost: []int{2, 3, 4}, node: true, last: siteBeta},
	"spare":    {at: "delta", lost: []int{3, 4}, node: true, last: rankThree + "; the job went on without it"},
}

// What last lines say of the proc that is lost first, and of a site whose node is killed.
const (
	rankThree = "rank 3 on site beta was killed by SIGKILL"
	siteBeta  = "site beta (client 1): its node was killed by SIGKILL; the job went on without it"
)

// losesTwice has rank 3 of a job die, two procs spawned for it, and then more procs, or a site,
// lost.
func losesTwice(what string) {
	x, parent, team := secondLosses[what], mpi.Parent(), (*mpi.Comm)(nil)
	inter := parent
	if parent == nil {
		w := mpi.World()
		if w.Rank() == 3 {
			for r := range 3 { // all are there
				_, err := mpi.Recv(w, make([]int64, 1), r, 0)
				must(err)
			}
			must(syscall.Kill(os.Getpid(), syscall.SIGKILL))
		}
		must(mpi.Send(w, []int64{1}, 3, 0))
		_, err := mpi.Recv(w, make([]int64, 1), 3, 0)
		isError(err, mpi.ErrProcFailed)
		left, err := w.Shrink()
		must(err)
		inter, err = spawnOn(left, x.at, 2)
		must(err)
	}
	team, err := inter.Merge(parent != nil)
	must(err)
	must(mpi.Barrier(team))
	me := team.Rank()
	ends := x.lost // themselves, or with their node
	if x.node {
		ends = x.lost[:1]
	}
	for _, r := range ends { // nobody is lost before all are through the barrier
		must(mpi.Send(team, []int64{1}, r, 2))
	}
	for i := 0; slices.Contains(ends, me) && i < team.Size(); i++ {
		_, err = mpi.Recv(team, make([]int64, 1), i, 2)
		must(err)
	}
	switch {
	case x.node && me == ends[0]:
		must(syscall.Kill(os.Getppid(), syscall.SIGKILL))
		hang()
	case x.node && slices.Contains(x.lost, me):
		hang()
	case slices.Contains(ends, me):
		must(syscall.Kill(os.Getpid(), syscall.SIGKILL))
	}
	for _, lost := range x.lost {
		_, err = mpi.Recv(team, make([]int64, 1), lost, 0)
		isLoss(err)
	}
	isLoss(mpi.Barrier(team))
	if me == slices.IndexFunc([]int{0, 1, 2, 3, 4}, func(r int) bool { return !slices.Contains(x.lost, r) }) {
		must(team.Revoke()) // the others hear of it
	}
	_, err = mpi.Recv(team, make([]int64, 1), me, 1) // nobody sends it
	isError(err, mpi.ErrRevoked)
	agreesAcross(inter, team.Rank(), x.lost)
	left, err := team.Shrink()
	must(err)
	flag := int32(^(1 << me))
	q, err := left.Iagree(&flag)
	must(err)
	_, err = q.Wait()
	must(err)
	want := int32(-1)
	for r := range 5 {
		if !slices.Contains(x.lost, r) {
			want &^= 1 << r
		}
	}
	sum := make([]int64, 1)
	must(mpi.Allreduce(left, []int64{1 << me}, sum, mpi.Sum))
	os.Stdout.WriteString(fmt.Sprintf("%d are left, %v\n", left.Size(), flag == want && int32(^sum[0]) == want))
}

// agreesAcross has both sides of an intercommunicator agree and shrink, without those of the team
// that are lost.
func agreesAcross(inter *mpi.Comm, me int, lost []int) {
	parents, children := int32(-1), int32(-1)
	far := 0
	for r := range 5 {
		switch {
		case slices.Contains(lost, r):
			continue
		case r < 3:
			parents &^= 1 << r
		default:
			children &^= 1 << r
		}
		if r < 3 != (me < 3) {
			far++
		}
	}
	want := children
	if me >= 3 {
		want = parents
	}
	all, err := inter.Agree(^(1 << me))
	isError(err, mpi.ErrProcFailed) // nobody has acknowledged anything
	for err != nil {
		if all != want {
			panic(fmt.Sprintf("rank %d: flags %b, want %b", me, all, want))
		}
		must(inter.FailureAck())
		all, err = inter.Agree(^(1 << me))
	}
	left, err := inter.Shrink()
	if far == 0 {
		isError(err, mpi.ErrProcFailed)
		return
	}
	must(err)
	if n, err := left.RemoteSize(); err != nil || n != far {
		panic(fmt.Sprintf("%d on the other side, want %d: %v", n, far, err))
	}
	sum := make([]int64, 1)
	must(mpi.Allreduce(left, []int64{1}, sum, mpi.Sum)) // of the other side
	if sum[0] != int64(far) {
		panic(fmt.Sprintf("the sum of the other side is %d, not %d", sum[0], far))
	}
}

// connections returns the TCP connections of this process.
func connections() (list []int) {
	entries, err := os.ReadDir("/proc/self/fd")
	must(err)
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		must(err)
		if peer, err := syscall.Getpeername(fd); err == nil {
			if _, ok := peer.(*syscall.SockaddrInet4); ok {
				list = append(list, fd)
			}
		}
	}
	return list
}

// cutsLink has rank 0 of a job spawn a proc and break its link to it. One of the two has to give
// way, and rank 1 goes on with the other.
func cutsLink() {
	parent := mpi.Parent()
	inter := parent
	before := connections()
	if parent == nil {
		must(mpi.Barrier(mpi.World()))
		before = connections()
		var err error
		inter, err = spawnOn(mpi.World(), "beta", 1)
		must(err)
	}
	team, err := inter.Merge(parent != nil)
	must(err)
	must(mpi.Barrier(team))
	if parent == nil && team.Rank() == 0 {
		fresh := slices.DeleteFunc(connections(), func(fd int) bool { return slices.Contains(before, fd) })
		if len(fresh) == 0 {
			panic("rank 0 has no TCP connection to the spawned proc")
		}
		for _, fd := range fresh {
			must(syscall.Shutdown(fd, syscall.SHUT_RDWR))
		}
	}
	for err == nil {
		err = mpi.Barrier(team)
	}
	isLoss(err)
	must(team.Revoke())
	left, err := team.Shrink()
	must(err)
	all, err := left.Agree(^(1 << team.Rank()))
	must(err)
	sum := make([]int64, 1)
	must(mpi.Allreduce(left, []int64{1 << team.Rank()}, sum, mpi.Sum))
	os.Stdout.WriteString(fmt.Sprintf("%d are left, %v\n", left.Size(), int64(^all) == sum[0]))
}

// TestLinkBetweenLivingIsCut: a job goes on without one of two procs of different worlds that live
// and lose their link, and no other one.
func TestLinkBetweenLivingIsCut(t *testing.T) {
	job := strings.Replace(twoSites, "embedded_server {}", "embedded_server {}\n  survive = true\n", 1) + "spawn { allow = [\"PROGRAM\"] }\nroute \"*\" { prefer = [\"tcp\"] }\n"
	_, out, problems := impiNode(t, "cuts a link", "-config", file(t, job))
	if strings.Count(out, "2 are left, true") != 2 || strings.Count(problems, "the others go on without this rank") != 1 {
		t.Errorf("of three procs two have to go on, and one to give way:\n%s%s", out, problems)
	}
}

// losesMany has a job spawn as many procs as it has itself at a site whose node is then killed.
func losesMany() {
	parent := mpi.Parent()
	inter := parent
	if parent == nil {
		var err error
		inter, err = spawnOn(mpi.World(), "delta", mpi.World().Size())
		must(err)
	}
	n := inter.Size()
	team, err := inter.Merge(parent != nil)
	must(err)
	must(mpi.Barrier(team))
	must(mpi.Send(team, []int64{1}, n, 2)) // the site is not lost before all are through the barrier
	if parent != nil {
		for i := 0; team.Rank() == n && i < team.Size(); i++ {
			_, err = mpi.Recv(team, make([]int64, 1), i, 2)
			must(err)
		}
		if team.Rank() == n {
			must(syscall.Kill(os.Getppid(), syscall.SIGKILL))
		}
		hang()
	}
	for lost := n; lost < 2*n; lost++ {
		_, err = mpi.Recv(team, make([]int64, 1), lost, 0)
		isLoss(err)
	}
	left, err := team.Shrink()
	must(err)
	must(mpi.Barrier(left))
	os.Stdout.WriteString(fmt.Sprintf("%d are left\n", left.Size()))
}

// TestLostSiteIsAskedOnce: each proc of a node has a link to each proc of a site of another world
// that is lost. The node finds out once that nobody is there, or a few times if they do not notice
// at once or it answers first, and not for each pair.
func TestLostSiteIsAskedOnce(t *testing.T) {
	const n = 8
	job := fmt.Sprintf(`
job {
  embedded_server {}
  survive = true
}
site "alpha" {
  client = 0
  host { address = "127.0.0.2"  procs = %[1]d }
}
site "delta" {
  spare = true
  host { address = "127.0.0.4"  procs = %[1]d }
}
program { command = ["PROGRAM"] }
spawn { allow = ["PROGRAM"] }
route "*" { prefer = ["tcp"] }
`, n)
	_, out, problems := impiNode(t, "loses many", "-config", file(t, job), "-log-level", "debug")
	if got := strings.Count(out, fmt.Sprintf("%d are left", n)); got != n {
		t.Errorf("%d have gone on, not %d:\n%s%s", got, n, out, problems)
	}
	asked := 0
	for line := range strings.Lines(problems) {
		if strings.Contains(line, "link to another world failed") && strings.Contains(line, "nobody listens there") {
			asked++
		}
	}
	t.Logf("%d searches in vain for another one of %d links", asked, n*n)
	if asked < 1 || asked > n*n/4 {
		t.Errorf("%d searches for links to a site that is lost, of which there were %d:\n%s", asked, n*n, problems)
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func isError(err, want error) {
	if !errors.Is(err, want) {
		panic(fmt.Sprintf("not %v: %v", want, err))
	}
}

// isLoss wants the error of an operation with a member that is lost, for which a faster one may
// have revoked the communicator.
func isLoss(err error) {
	if !errors.Is(err, mpi.ErrRevoked) {
		isError(err, mpi.ErrProcFailed)
	}
}

// TestSecondLoss: a job that has spawned procs for one that it has lost goes on without more of its
// procs, and of those that it has spawned. All that are left hear of it, and communicators of both
// are revoked, shrunk and agreed on.
func TestSecondLoss(t *testing.T) {
	job := strings.ReplaceAll(strings.Replace(twoSites, "embedded_server {}", "embedded_server {}\n  survive = true\n", 1), "procs = 1", "procs = 2") + `
site "delta" {
  spare = true
  host { address = "127.0.0.4"  procs = 2 }
}
spawn { allow = ["PROGRAM"] }
`
	for what, x := range secondLosses {
		t.Run(what, func(t *testing.T) {
			status, out, problems := impiNode(t, "loses twice "+what, "-config", file(t, job))
			if n, want := strings.Count(out, fmt.Sprintf("%d are left, true", 5-len(x.lost))), 5-len(x.lost); n != want {
				t.Errorf("%d have gone on, not %d:\n%s%s", n, want, out, problems)
			}
			lines := strings.Split(strings.TrimSpace(problems), "\n")
			if last := lines[len(lines)-1]; status != 128+9 || last != "impi-node: "+x.last {
				t.Errorf("status %d, last line %q, not %q", status, last, x.last)
			}
		})
	}
}
