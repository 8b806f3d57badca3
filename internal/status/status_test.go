package status

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/links"
)

const world = "MPI_COMM_WORLD"

// waits is a proc that is blocked.
func waits(rank int, call string, d time.Duration, partners ...links.Partner) links.Proc {
	return links.Proc{Rank: rank, PID: 100 + rank, State: links.ProcRunning, Wait: links.Waiting{State: "asleep"},
		Blocked: &links.Blocked{Time: d, Calls: []links.Call{{Name: call}}, Partners: partners}}
}

func from(peer int) links.Partner {
	return links.Partner{What: "recv", Peer: peer, Tag: 7, Comm: world}
}

func lock(peer int) links.Partner {
	return links.Partner{What: links.WantsLock, Peer: peer, Comm: "window w"}
}

// holds is a proc of whose memory some hold the lock, for which others wait.
func holds(p links.Proc, holders []int, waiters ...int) links.Proc {
	p.Blocked.Locks = append(p.Blocked.Locks, links.Lock{Window: "w", Holders: holders, Waiters: waiters})
	return p
}

func lostProc(rank int) links.Proc {
	return links.Proc{Rank: rank, PID: 100 + rank, State: links.ProcLost, Lost: &links.Loss{First: rank, Last: rank, At: time.Now(), Why: "was killed"}}
}

func job(procs ...links.Proc) *links.Job {
	s := links.Site{Name: "alpha", Own: true, Procs: len(procs), Hosts: []string{"10.0.0.1"}}
	return &links.Job{Name: "heat", ID: "a1b2", Sites: []links.SiteState{{Site: s, Here: true, PID: 42, State: links.NodeRunning, Ranks: procs}}}
}

func ending(j *links.Job) *links.Job {
	j.Sites[0].State = links.NodeEnding
	return j
}

func TestDeadlock(t *testing.T) {
	long := 3 * time.Second
	anySource := links.Partner{What: "recv", Any: true, Tag: 1}
	moving := links.Partner{What: "recv", Peer: 0, Tag: 7, Why: "the rest of the message"}
	finished := links.Proc{Rank: 1, State: links.ProcFinished}
	busy := waits(1, "mpi.Recv", long, from(0))
	busy.Blocked.Computes = true
	for name, c := range map[string]struct {
		job  *links.Job
		want *Deadlock
	}{
		"two":                 {job(waits(0, "mpi.Recv", long, from(1)), waits(1, "mpi.Recv", 2*long, from(0))), &Deadlock{For: long, Cycle: []int{0, 1}}},
		"a tail":              {job(waits(0, "mpi.Recv", long, from(1)), waits(1, "mpi.Recv", long, from(2)), waits(2, "mpi.Recv", long, from(1))), &Deadlock{For: long, Cycle: []int{1, 2}}},
		"any source":          {job(waits(0, "mpi.Recv", long, anySource), waits(1, "mpi.Recv", long, from(0))), &Deadlock{For: long}},
		"of one":              {job(waits(0, "mpi.Recv", long, from(0))), &Deadlock{For: long, Cycle: []int{0}}},
		"for who has ended":   {job(waits(0, "mpi.Recv", long, from(1)), finished), &Deadlock{For: long}},
		"one computes":        {job(waits(0, "mpi.Recv", long, from(1)), links.Proc{Rank: 1, State: links.ProcRunning}), nil},
		"a thread computes":   {job(waits(0, "mpi.Recv", long, from(1)), busy), nil},
		"not for long":        {job(waits(0, "mpi.Recv", long, from(1)), waits(1, "mpi.Recv", time.Millisecond, from(0))), nil},
		"bytes move":          {job(waits(0, "mpi.Recv", long, from(1)), waits(1, "mpi.Recv", long, moving)), nil},
		"accepts others":      {job(waits(0, "mpi.Recv", long, from(1)), waits(1, "mpi.Accept", long)), nil},
		"accepts, and more":   {job(waits(0, "MPI_Comm_accept", long, from(0))), nil},
		"one has left":        {job(waits(0, "MPI_Reduce", long, links.Partner{What: "collective", Peer: 1}), waits(1, "MPI_Finalize", long, links.Partner{What: "collective", Peer: 0})), &Deadlock{For: long, Cycle: []int{0, 1}}},
		"all leave":           {job(waits(0, "MPI_Finalize", long, links.Partner{What: "collective", Peer: 1}), waits(1, "mpi.Finalize", long, links.Partner{What: "collective", Peer: 0})), nil},
		"one leaves for good": {job(waits(0, "mpi.Recv", long, from(1)), waits(1, "mpi.Finalize", long)), nil},
		"a lock each":         {job(holds(waits(0, "MPI_Win_lock", long, lock(1)), []int{0}, 1), holds(waits(1, "mpi.Win.Lock", long, lock(0)), []int{1}, 0)), &Deadlock{For: long, Cycle: []int{0, 1}}},
		"a lock, a message":   {job(waits(0, "MPI_Recv", long, from(2)), holds(waits(1, "MPI_Recv", long, from(0)), []int{0}, 2), waits(2, "MPI_Win_lock", long, lock(1))), &Deadlock{For: long, Cycle: []int{0, 2}}},
		"its own memory":      {job(waits(0, "MPI_Recv", long, from(1)), holds(waits(1, "MPI_Win_lock", long, lock(1)), []int{0}, 1)), &Deadlock{For: long, Cycle: []int{0, 1}}},
		"not asked for yet":   {job(waits(0, "MPI_Recv", long, from(2)), holds(waits(1, "MPI_Recv", long, from(0)), []int{0}, 3), waits(2, "MPI_Win_lock", long, lock(1)), waits(3, "MPI_Win_lock", long, lock(1))), nil},
		"one of two locks":    {job(holds(waits(0, "MPI_Win_lock", long, lock(1), lock(1)), []int{0}, 1), holds(waits(1, "MPI_Win_lock", long, lock(0)), []int{1}, 0)), nil},
		"a silent lock":       {job(waits(0, "MPI_Win_lock", long, lock(1)), links.Proc{Rank: 1, State: links.ProcRunning, Silent: "it does not answer"}), nil},
		"post and complete":   {job(waits(0, "MPI_Win_start", long, links.Partner{What: links.WantsPost, Peer: 1}), waits(1, "MPI_Win_wait", long, links.Partner{What: links.WantsComplete, Peer: 0})), &Deadlock{For: long, Cycle: []int{0, 1}}},
		"operations":          {job(waits(0, "MPI_Win_flush", long, links.Partner{What: links.WantsWindow, Peer: 1}), waits(1, "MPI_Recv", long, from(0))), nil},
		"one is lost":         {job(waits(0, "mpi.Recv", long, from(2)), lostProc(1), waits(2, "mpi.Recv", long, from(0))), &Deadlock{For: long, Cycle: []int{0, 2}}},
		"another world":       {job(waits(0, "mpi.Recv", long, links.Partner{What: "recv", OtherWorld: true})), nil},
		"call not known":      {job(links.Proc{Rank: 0, State: links.ProcRunning, Blocked: &links.Blocked{Time: long, Partners: []links.Partner{from(0)}}}), nil},
		"in MPI_Init":         {job(waits(0, "mpi.Recv", long, from(1)), links.Proc{Rank: 1, State: links.ProcInit}), nil},
		"an older node":       {job(waits(0, "mpi.Recv", long, from(1)), links.Proc{Rank: 1}), nil},
		"nobody":              {job(), nil},
		"one has died":        {job(waits(0, "MPI_Barrier", long, from(1)), waits(1, "MPI_Barrier", long, from(0)), links.Proc{Rank: 2, State: links.ProcEnded, Ended: "was killed by SIGABRT"}), nil},
		"the job ends":        {ending(job(waits(0, "mpi.Recv", long, from(1)), waits(1, "mpi.Recv", long, from(0)))), nil},
	} {
		findHolders(c.job)
		got := findDeadlock(c.job)
		if (got == nil) != (c.want == nil) || got != nil && (got.For != c.want.For || !slices.Equal(got.Cycle, c.want.Cycle)) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	other := job(waits(0, "mpi.Recv", long, from(1)), waits(1, "mpi.Recv", long, from(0)))
	other.Sites = append(other.Sites, links.SiteState{Site: links.Site{Name: "beta", First: 2, Procs: 1}})
	if got := findDeadlock(other); got != nil {
		t.Errorf("%+v, though a site was not asked", got)
	}
}

func TestText(t *testing.T) {
	since := time.Now().Add(-3 * time.Hour)
	j := job(
		waits(0, "MPI_Recv", 40*time.Second+100*time.Millisecond, from(3)),
		waits(1, "mpi.Waitall", 75*time.Minute, links.Partner{What: "send", Peer: 2, Tag: 1, Comm: world, Why: "SYNCACK"}, links.Partner{What: "recv", Any: true, Tag: -1}),
		waits(2, "mpi.Barrier", 12*time.Millisecond, links.Partner{What: "collective", Peer: 0, Comm: world}, links.Partner{What: "collective", Peer: 3, Comm: world}),
		links.Proc{Rank: 3, PID: 103, State: links.ProcRunning, Wait: links.Waiting{State: "computing", Progress: time.Millisecond}},
		links.Proc{Rank: 4, PID: 104, State: links.ProcRunning, Silent: "it does not answer"},
		links.Proc{Rank: 5, PID: 105, State: links.ProcInit},
		links.Proc{Rank: 6, PID: 106, State: links.ProcEnded, Ended: "was killed by signal 9 (killed)"},
		links.Proc{Rank: 7, PID: 107, State: links.ProcRunning, Silent: "it does not answer", Since: since},
	)
	j.Sites[0].Ranks[1].Blocked.Calls[0].At = "heat/main.go:88"
	j.Sites[0].Ranks[2].Blocked.Computes = true
	j.Sites[0].Transports = []links.Transport{{Name: "tcp", State: "healthy", Starts: 3}, {Name: "quic", State: "failed", Starts: 1}, {Name: "unix", State: "healthy", Drained: true}}
	j.Sites = append(j.Sites, links.SiteState{Site: links.Site{Name: "beta", Client: 1, Own: true, First: 7, Procs: 2}, State: links.NodeRunning, Ranks: []links.Proc{
		{Rank: 7, PID: 7, Host: 1, State: links.ProcFinished}, {Rank: 8, PID: 7, Host: 2, State: links.ProcFinished},
	}, Agents: []links.Host{{Rank: 1, Address: "10.0.0.2"}, {Rank: 2, Address: "10.0.0.13"}}})
	j.Sites = append(j.Sites, links.SiteState{Site: links.Site{Client: 2, First: 9, Procs: 1}})
	fast := pair(0, 2, sent(9, 9000, 8700), sent(1, 50, 5))
	fast.Speed = &links.Speed{How: links.HowKernel, Measure: links.Measure{HalfTrip: 52500}}
	j.Pairs = []links.Pair{{A: 0, B: 1, State: links.StateLinked, Transport: "shm", Plane: "peer"}, fast, {A: 0, B: 3, State: links.StateAgents}, {A: 0, B: 4, State: links.StateUnused}}
	var b bytes.Buffer
	write(&b, &Report{Jobs: []Job{{Job: *j, Deadlock: &Deadlock{For: 90 * time.Second, Cycle: []int{0, 3}}}}})
	want := `job heat  (a1b2)

  site alpha  ranks 0-7  10.0.0.1  node 42 running  plugin tcp started 3 times, plugin quic failed, unix is drained
    rank 0  pid 100  blocked for 40.1 s in MPI_Recv (from rank 3, tag 7 in MPI_COMM_WORLD)
    rank 1  pid 101  blocked for 1h15m0s in mpi.Waitall (to rank 2, tag 1 in MPI_COMM_WORLD, which has not begun to receive; from any rank, any tag) at heat/main.go:88
    rank 2  pid 102  blocked for 12 ms in mpi.Barrier (rank 0 in MPI_COMM_WORLD; rank 3 in MPI_COMM_WORLD); other threads compute
    rank 3  pid 103  computing, looks after messages every 1ms
    rank 4  pid 104  silent: it does not answer
    rank 5  pid 105  in MPI_Init
    rank 6  pid 106  was killed by signal 9 (killed)
    rank 7  pid 107  silent since ` + since.Format(time.TimeOnly) + `, 3h0m0s ago: it does not answer

  site beta  ranks 7-8  elsewhere, running
    rank 7  10.0.0.2   pid 7  finished
    rank 8  10.0.0.13  pid 7  finished

  site client 2  rank 9  another MPI

  links: 1 shm, 1 tcp, 1 through the agents (impi-node links shows them)
  under way: unknown of 2
    ENDS   LINK      STATE   HALF TRIP  MESSAGES > / <  BYTES > / <
    0 - 2  tcp fd    linked  52.5 us    9 / 1           8.70 kB / 5 B
    0 - 1  shm peer  linked  -          ? / ?           ? / ?
    0 - 3  -         agents  -          ? / ?           ? / ?

  probable deadlock: all procs wait for others, for 1m30s
    rank 0 --> rank 3 --> rank 0
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestSilentHost: procs of a host that does not answer are listed, and nothing is called a deadlock
// without them.
func TestSilentHost(t *testing.T) {
	long := 3 * time.Second
	about := func(number int) links.NodeInfo {
		return links.NodeInfo{Job: "heat", ID: "a1b2", Site: "alpha", Number: number, Host: []string{"10.0.0.1", "10.0.0.22"}[number]}
	}
	site := links.Site{Name: "alpha", Own: true, Procs: 3, Hosts: []string{"10.0.0.1", "10.0.0.22"}, HostProcs: []int{2, 1}, PIDs: []int{200, 201, 202}}
	node := &links.Node{NodeInfo: about(0), State: links.NodeRunning, Sites: []links.Site{site}, Hosts: []links.Host{{Address: "10.0.0.1"}},
		Procs: []links.Proc{waits(0, "mpi.Recv", long, from(1)), waits(1, "mpi.Recv", long, from(0))}}
	since := time.Now().Add(-time.Hour)
	j := links.Merge([]links.FoundNode{{About: node.NodeInfo, Node: node}, {About: about(1), Err: links.ErrSilent, Since: since, Forwarded: true}})[0]
	d, stalled := verdict(&j)
	if d != nil || stalled != nil {
		t.Errorf("%+v and %+v, though rank 2 is not told of", d, stalled)
	}
	var b strings.Builder
	write(&b, &Report{Jobs: []Job{{Job: j}}})
	for _, want := range []string{
		"    rank 1  10.0.0.1   pid 101  blocked for 3.0 s",
		"    rank 2  10.0.0.22  pid 202  silent since " + since.Format(time.TimeOnly) + ", 1h0m0s ago: the node does not answer\n",
		"all procs that are known of wait for others; whether that is a deadlock depends on rank 2, of which nothing is known\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
	ended := job(waits(0, "mpi.Recv", long, from(1)), links.Proc{Rank: 1, State: links.ProcNotTold}, links.Proc{Rank: 2, State: links.ProcEnded})
	if r := unheard(ended); r != nil {
		t.Errorf("%v, though the job is about to end", r)
	}
	j.Sites[0].Ranks[2].Since = time.Time{}
	if s, what := Describe(&j.Sites[0].Ranks[2]); s != "silent" || what != "not told: the node does not answer" {
		t.Errorf("%q, %q", s, what)
	}
	j.Sites[0].Ranks[1].Blocked = nil
	if r := unheard(&j); r != nil {
		t.Errorf("%v, though rank 1 does not wait", r)
	}
}

// TestNotAsked: procs that nobody can ask from here are called so, with the reason, which is no
// fault.
func TestNotAsked(t *testing.T) {
	const why = "not asked: the route has direct = false"
	j := job(waits(0, "MPI_Recv", 3*time.Second, from(1)))
	j.Sites = append(j.Sites, links.SiteState{Site: links.Site{Name: "beta", Client: 1, Own: true, First: 1, Procs: 1}, NotAsked: why,
		Ranks: []links.Proc{{Rank: 1, State: links.ProcNotAsked, Silent: why}}})
	if d, stalled := verdict(j); d != nil || stalled != nil {
		t.Errorf("%+v and %+v, though rank 1 was not asked", d, stalled)
	}
	r := &Report{Jobs: []Job{{Job: *j}}}
	if r.status() != statusOK {
		t.Errorf("status %d", r.status())
	}
	var b strings.Builder
	write(&b, r)
	for _, want := range []string{"  site beta  rank 1  elsewhere, " + why + "\n", "    rank 1  pid not told  " + why + "\n", "depends on rank 1, of which nothing is known\n"} {
		if !strings.Contains(b.String(), want) || strings.Contains(b.String(), "silent") {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
	s := newScreen(nil, time.Second)
	s.Update(look{r, time.Now()})
	if text := s.summary(2); !strings.Contains(text, "1 blocked, 1 not asked") {
		t.Error(text)
	}
}

func TestCommandLine(t *testing.T) {
	for line, want := range map[string]int{
		"-h": statusOK, "x": cmdline.StatusUsage, "-deadline 0s": cmdline.StatusUsage, "-every 1ms": cmdline.StatusUsage, "-y": cmdline.StatusUsage,
		"-run-dir /nowhere": statusNoJob, "-run-dir /nowhere -watch": statusNoJob,
	} {
		var out, errs bytes.Buffer
		if got := Command().Execute(strings.Fields(line), &out, &errs); got != want || (out.Len() > 0) != (got == statusOK) || (errs.Len() > 0) == (got == statusOK) {
			t.Errorf("%q: status %d, want %d; printed %q and %q", line, got, want, &out, &errs)
		}
	}
	if Command().Execute([]string{"-help"}, io.Discard, io.Discard) != statusOK {
		t.Error("-help failed")
	}
}

// TestServers: which server the sites have, and since when they have lost it.
func TestServers(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	j := &Job{}
	for i, s := range []*links.JobServer{
		{Address: "10.0.0.1:7800", Others: []string{"10.0.0.2:7800"}},
		nil,
		{Address: "10.0.0.1:7800", Lost: now.Add(-90 * time.Second), Others: []string{"10.0.0.2:7800"}},
		{Address: "10.0.0.3:7800", Ours: true, DisconnectedSince: now.Add(-2 * time.Second)},
		{Address: "10.0.0.3:7800", Embedded: true},
	} {
		j.Sites = append(j.Sites, links.SiteState{Site: links.Site{Name: string(rune('a' + i)), Client: i}, Server: s})
	}
	want := []string{
		"server 10.0.0.1:7800 (not needed: 10.0.0.2:7800): a is connected; c has lost it since 03:02:35, 1m30s ago, and goes on without it",
		"server 10.0.0.3:7800, in the node of site e: d is not connected since 03:04:03, 2.0 s ago, and dials it again; e is connected",
	}
	if got := servers(j, now); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
