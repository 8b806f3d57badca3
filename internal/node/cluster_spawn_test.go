package node

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/spawn"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/transcript"
)

func init() {
	programs["lingers"] = func() { // goes on alone for longer than anybody waits for a host that leaves
		initialize()
		greet(mpi.Parent(), true)
		check(mpi.Parent().Disconnect())
		<-time.After(4 * time.Second)
		fmt.Println("late")
		finalize()
	}
	programs["fails-late"] = func() { // ends badly when its world has ended, connected with its parents
		initialize()
		greet(mpi.Parent(), true)
		finalize()
		os.Exit(4)
	}
}

// spawnApart runs a job of one site, of three hosts with a node each, whose procs spawn. Spawned
// procs say "h0", "h1" or "h2" as extra.
func spawnApart(t *testing.T, slots int, orders ...order) []*running {
	t.Helper()
	return spawnOn(t, []int{3}, slots, orders...)[0]
}

// spawnOn is spawnApart for several sites, with so many hosts each. Hosts are counted over all.
func spawnOn(t *testing.T, hosts []int, slots int, orders ...order) [][]*running {
	t.Helper()
	job := clusterJob("spawn", 1, hosts...)
	for i := range job.Sites {
		s := &job.Sites[i]
		s.Program.Env = spawnOrders(orders...)
		s.Spawn = config.Spawn{Slots: slots}
		if i > 0 { // guests have its environment
			s.Program.Env[modeVariable] = "either"
			s.Spawn.Allow = []string{s.Program.Path}
		}
	}
	job.Sites[0].Hosts[2].Name = "node3.invalid"
	job.Limits.Stop = 100 * time.Millisecond
	host := 0
	return startApart(t, job, func(o *Options) {
		o.Site.Server.Embedded = host == 0 && len(hosts) == 1
		o.Site.Program.Env = maps.Clone(o.Site.Program.Env)
		o.Site.Program.Env["EXTRA"] = fmt.Sprint("h", host)
		host++
	})
}

// at is an order of procs at some hosts.
func at(hosts string, mode string, procs, root int) order {
	o := order{Commands: []ordered{{Mode: mode, Procs: procs}}, Root: root}
	if hosts != "" {
		o.Commands[0].Info = map[string]string{"host": hosts}
	}
	return o
}

// wantHosts wants the procs of a spawned world to be on these hosts, by rank.
func wantHosts(t *testing.T, s *transcript.Writer, world string, hosts ...int) {
	t.Helper()
	for rank, h := range hosts {
		if countLines(s, fmt.Sprintf(`\[%s\.%d\] child %d of %d .* extra h%d`, world, rank, rank, len(hosts), h)) != 1 {
			t.Errorf("rank %d of %s is not on host %d", rank, world, h)
		}
	}
}

// TestSpawnOnAllHosts: procs are spread over the hosts of a site, from those of the spawner's on,
// or over those that are named, and the slots are the site's and come back.
func TestSpawnOnAllHosts(t *testing.T) {
	both := order{Commands: []ordered{{Mode: "child", Procs: 1}, {Mode: "child", Procs: 4}}, Root: 2}
	other := order{Commands: []ordered{{Mode: "child", Procs: 5, Info: map[string]string{"hosts": "127.0.1.[1,3]"}}}, Root: 1}
	all := spawnApart(t, 5, // each world needs all slots, so it waits for the end of the one before
		at("", "child", 5, 1), at("node3.invalid", "child", 5, 0), at("127.0.1.3, 127.0.1.1", "child", 5, 1),
		at("localhost", "child", 5, 1), both, other, at("alpha", "child", 5, 2))
	wantNone(t, all)
	out := all[0].out
	wantHosts(t, out, "spawn1", 1, 1, 2, 2, 0)
	wantHosts(t, out, "spawn2", 2, 2, 2, 2, 2)
	wantHosts(t, out, "spawn3", 2, 2, 2, 0, 0)
	wantHosts(t, out, "spawn4", 1, 1, 1, 1, 1)
	wantHosts(t, out, "spawn5", 2, 2, 0, 0, 1)
	wantHosts(t, out, "spawn6", 0, 0, 0, 2, 2)
	wantHosts(t, out, "spawn7", 0, 0, 1, 1, 2)
	wantLines(t, out, map[string]int{`\[spawn5\.0\] child 0 of 5 appnum 0 .*`: 1, `\[spawn5\.[1-4]\] child . of 5 appnum 1 .*`: 4, `\[0\] all done`: 1})
	wantNothingLeft(t, all)
}

// TestSpawnOnManyHosts: a world is spawned on more hosts than IMPI has clients, by one command for
// all of them and by a command for each; each time it is one client. If a proc on one of them fails
// before Init, what is refused is its command.
func TestSpawnOnManyHosts(t *testing.T) {
	if raceDetector {
		skips.NotRun(t, "-race is given, and 33 nodes and 99 procs need longer with it than links between them wait", "go test ./internal/node")
	}
	const hosts = spawn.MaxClients + 1
	each, one := order{Root: 1}, order{Root: 2}
	var want []int
	for i := range hosts {
		h := hosts - 1 - i
		want = append(want, h)
		address := netip.AddrFrom4([4]byte{127, 0, 1, byte(1 + h)}).String()
		each.Commands = append(each.Commands, ordered{Mode: "child", Procs: 1, Info: map[string]string{"host": address}})
		mode := "never-init"
		if i == hosts-2 {
			mode = "no-init"
		}
		one.Commands = append(one.Commands, ordered{Mode: mode, Procs: 1, Info: map[string]string{"host": address}})
	}
	// Slots for two worlds: whether the first one is seen to end before the second begins is not for
	// this test.
	all := spawnOn(t, []int{hosts}, 2*hosts, at("alpha", "child", hosts, 0), each, one)[0]
	wantNone(t, all)
	out := all[0].out
	wantHosts(t, out, "spawn2", want...)
	slices.Sort(want)
	wantHosts(t, out, "spawn1", want...)
	wantLines(t, out, map[string]int{
		fmt.Sprintf(`\[2\] .* error .*command %d .*proc %d of site alpha, spawn3 exited with status 3 before it called MPI Init.*`, hosts-2, hosts-2): 1,
		`\[0\] all done`: 1,
	})
	wantNothingLeft(t, all)
}

// TestSpawnOnHostsOfAnotherSite: another site spreads procs over its hosts, too, in a world that
// has hosts of the spawner's site before and behind.
func TestSpawnOnHostsOfAnotherSite(t *testing.T) {
	o := order{Root: 1, Commands: []ordered{
		{Mode: "child", Procs: 2, Info: map[string]string{"host": "127.0.1.[2-3]"}}, {Mode: "child", Procs: 4, Info: map[string]string{"host": "beta"}}, {Mode: "child", Procs: 3},
	}}
	all := spawnOn(t, []int{3, 3}, 5, o)
	wantNone(t, flat(all))
	for rank, h := range []int{1, 2, 3, 3, 4, 5, 1, 2, 0} {
		if countLines(all[h/3][0].out, fmt.Sprintf(`\[alpha\.spawn1\.%d\] child %d of 9 .* extra h%d`, rank, rank, h)) != 1 {
			t.Errorf("rank %d is not on host %d", rank, h)
		}
	}
	wantLines(t, all[0][0].out, map[string]int{`\[0\] all done`: 1})
	wantNothingLeft(t, flat(all))
}

// TestSpawnOnHostsRefused: who asks for too much, or for hosts or programs that are not there,
// hears what is missing and where, and nothing of it is left.
func TestSpawnOnHostsRefused(t *testing.T) {
	missing := order{Commands: []ordered{{Path: "/no/such/program", Procs: 3}}, Root: 1}
	all := spawnApart(t, 4,
		at("", "child", 5, 1), at("node4.invalid", "child", 1, 2), at("127.0.1.[1-", "child", 1, 2), missing, at("", "no-init", 3, 1), at("", "child", 4, 2))
	wantNone(t, all)
	out := all[0].out
	wantLines(t, out, map[string]int{
		`\[1\] .* error .*of the 4 slots of site alpha for spawned procs 0 are taken, and it needs 5 more.*`:           1,
		`\[2\] .* error .*there is no site or host "node4.invalid" in the job, which has alpha.*`:                      1,
		`\[2\] .* error .*its host "127.0.1.\[1-" is no list of hosts.*`:                                               1,
		`\[1\] .* error .*command 0 \(/no/such/program\): on host 127.0.1.2, there is no program "/no/such/program".*`: 1,
		`\[1\] .* error .*proc [0-2] of site alpha, spawn5 exited with status 3 before it called MPI Init.*`:           1,
		`\[spawn[0-9]\.[0-3]\] child . of 4 .*`:                                                                        4,
		`\[0\] all done`:                                                                                               1,
	})
	wantNothingLeft(t, all)
}

// TestSpawnedOnAnotherHostFails: a spawned proc that fails on any host fails its parents' job, by
// its name and with its status.
func TestSpawnedOnAnotherHostFails(t *testing.T) {
	o := at("127.0.1.3", "fails", 1, 1)
	o.Keep, o.Stop = true, "hang"
	all := spawnApart(t, 4, o)
	for i, f := range end(all) {
		if f == nil || f.Status != 17 || !strings.Contains(f.Text, "spawn1, which rank 1 on site alpha has spawned, failed: ") {
			t.Errorf("host %d: %+v", i, f)
		}
	}
	wantNothingLeft(t, all)
}

// TestSpawnedOnAnotherHostFailsLate: so does one that fails after its Finalize.
func TestSpawnedOnAnotherHostFailsLate(t *testing.T) {
	o := at("127.0.1.3", "fails-late", 1, 1)
	o.Keep = true
	all := spawnApart(t, 4, o)
	if f := end(all)[0]; f == nil || f.Status != 4 || !strings.Contains(f.Text, "spawn1") {
		t.Errorf("%+v", f)
	}
	wantNothingLeft(t, all)
}

// TestSpawnedOutliveTheirJobOnHosts: procs that have parted from their parents go on when the job
// is over, and the hosts stay for their output; the operator ends them at the head.
func TestSpawnedOutliveTheirJobOnHosts(t *testing.T) {
	all := spawnApart(t, 4, at("127.0.1.3", "lingers", 1, 1))
	wantNone(t, all)
	wantLines(t, all[0].out, map[string]int{`\[spawn1\.0\] late`: 1})
	wantNothingLeft(t, all)

	all = spawnApart(t, 4, at("127.0.1.[2-3]", "free", 2, 1))
	for rank := range 2 {
		all[0].out.Line(t, fmt.Sprintf("[spawn1.%d] on its own", rank))
	}
	all[0].out.Line(t, "[0] all done")
	all[0].cancel(fmt.Errorf("the operator has had enough"))
	end(all)
	wantNothingLeft(t, all)
}
