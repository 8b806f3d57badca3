package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/mpi"
)

// spawnTree is a program whose procs spawn as spawnOrders says: procs at a host, and then by whom.
// The children say on which machine they run.
func spawnTree() error {
	if parent := mpi.Parent(); parent != nil {
		at, err := machineAddress()
		if err != nil {
			return err
		}
		fmt.Println("child at", at)
		if os.Getenv(stayWith) != "" {
			hang()
		}
		told := mpi.Send(parent, []int64{int64(os.Getpid())}, 0, 0)
		if err := errors.Join(told, mpi.Barrier(mpi.World()), parent.Disconnect()); err != nil {
			return err
		}
		if flag := os.Getenv(spawnLater); flag != "" && !slices.Contains(os.Args, "last") {
			return spawnOnce(flag)
		}
		if os.Getenv(outlive) != "" {
			<-time.After(5 * time.Second)
			fmt.Println("on its own at", at)
		}
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, o := range strings.Fields(os.Getenv(spawnOrders)) {
		var procs, root int
		var host string
		if n, err := fmt.Sscanf(strings.ReplaceAll(o, ":", " "), "%d %d %s", &root, &procs, &host); n < 3 {
			return err
		}
		info := mpi.NewInfo()
		if host != "-" {
			if err := info.Set("host", host); err != nil {
				return err
			}
		}
		children, _, err := mpi.World().Spawn(mpi.Command{Path: self, Procs: procs, Info: info}, root)
		if err != nil {
			fmt.Println("not spawned:", err)
			continue
		}
		if os.Getenv(stayWith) != "" {
			fmt.Println("spawned")
			hang()
		}
		pids := make([]int64, procs)
		if mpi.World().Rank() == 0 {
			for i := range pids {
				if _, err := mpi.Recv(children, pids[i:i+1], i, 0); err != nil {
					return err
				}
			}
		}
		if err := children.Disconnect(); err != nil {
			return err
		}
		if os.Getenv(spawnLater)+os.Getenv(outlive) == "" {
			if err := awaitEnd(pids); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitEnd has all ranks wait until processes that rank 0 knows have ended: a spawn waits for their
// slots for two seconds only. All machines of a test have the same processes.
func awaitEnd(pids []int64) error {
	for _, pid := range pids {
		for pid > 0 && unix.Kill(int(pid), 0) == nil {
			<-time.After(10 * time.Millisecond)
		}
	}
	return mpi.Barrier(mpi.World())
}

// spawnOnce spawns procs when there is a file.
func spawnOnce(flag string) error {
	for {
		if _, err := os.Stat(flag); err == nil {
			break
		}
		<-time.After(10 * time.Millisecond)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	children, _, err := mpi.World().Spawn(mpi.Command{Path: self, Args: []string{"last"}, Procs: 4}, 0)
	if err != nil {
		return err
	}
	return children.Disconnect()
}

// Variables of spawnTree: "root:procs:host" for each spawn, where host "-" stands for none; that
// the procs stay connected with those that they have spawned; and that these go on when the job is
// over.
const (
	spawnOrders = "IMPI_TEST_SPAWN"
	stayWith    = "IMPI_TEST_STAY"
	outlive     = "IMPI_TEST_OUTLIVE"
	spawnLater  = "IMPI_TEST_SPAWN_LATER" // a file: procs that outlive the job spawn others when it is there
)

// machineAddress is the address in 10.77.0.0/16 of the machine that runs this.
func machineAddress() (string, error) {
	all, err := net.InterfaceAddrs()
	for _, a := range all {
		if s, _, _ := strings.Cut(a.String(), "/"); strings.HasPrefix(s, "10.77.") {
			return s, nil
		}
	}
	return "", errors.Join(err, errors.New("no machine of netns"))
}

// serversOf counts the lines of a spawned world's procs that say on which machine they run.
func serversOf(log, world string) (at []string) {
	for line := range strings.Lines(log) {
		if _, x, ok := strings.Cut(line, "] child at "); ok && strings.HasPrefix(line, "["+world+".") {
			at = append(at, strings.TrimSpace(x))
		}
	}
	slices.Sort(at)
	return at
}

// TestSpawnOnMachines: procs are spawned on all machines of the site, or on those that the info key
// host names: by address, also where network has chosen another, and by a name of the file.
func TestSpawnOnMachines(t *testing.T) {
	t.Setenv(spawnOrders, "0:6:- 4:6:10.77.0.2 1:6:10.78.0.3 2:6:alpha 5:6:10.77.0.[1,3] 0:1:10.77.0.5 3:1:10.77.0.9 1:6:beta")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file, machines := machineJob(t, fmt.Sprintf("spawn {\n  slots = 6\n  allow = [%q]\n}\n", self))
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(b), "  procs  = 2\n", "  procs  = 2\n  network = \"10.78.0.0/16\"\n")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for i, m := range machines {
		if out, err := m.Command(t.Context(), "ip", "address", "add", fmt.Sprintf("10.78.0.%d/16", i+1), "dev", "eth0").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	nodes := startOn(t, file, "spawnTree", machines)
	for i, s := range ends(nodes) {
		if s != 0 {
			t.Errorf("machine %d: status %d", i, s)
		}
	}
	alpha, beta := nodes[0].out.String(), nodes[3].out.String()
	for _, want := range []struct {
		log, world string
		at         string
	}{
		{alpha, "alpha.spawn1", "[10.77.0.1 10.77.0.1 10.77.0.2 10.77.0.2 10.77.0.3 10.77.0.3]"},
		{alpha, "alpha.spawn2", "[10.77.0.2 10.77.0.2 10.77.0.2 10.77.0.2 10.77.0.2 10.77.0.2]"},
		{alpha, "alpha.spawn3", "[10.77.0.3 10.77.0.3 10.77.0.3 10.77.0.3 10.77.0.3 10.77.0.3]"},
		{alpha, "alpha.spawn4", "[10.77.0.1 10.77.0.1 10.77.0.2 10.77.0.2 10.77.0.3 10.77.0.3]"},
		{alpha, "alpha.spawn5", "[10.77.0.1 10.77.0.1 10.77.0.1 10.77.0.3 10.77.0.3 10.77.0.3]"},
		{beta, "alpha.spawn6", "[10.77.0.5]"},
		{beta, "alpha.spawn8", "[10.77.0.4 10.77.0.4 10.77.0.5 10.77.0.5 10.77.0.6 10.77.0.6]"},
	} {
		if got := fmt.Sprint(serversOf(want.log, want.world)); got != want.at {
			t.Errorf("%s is at %s, not %s", want.world, got, want.at)
		}
	}
	if want := `no site or host "10.77.0.9" in the job, which has alpha, beta`; strings.Count(alpha+beta, want) != 12 || strings.Count(alpha+beta, "not spawned") != 12 {
		t.Errorf("not every rank says %q, or something else was refused", want)
	}
}

// TestMachineLostWithSpawned: a machine that crashes while procs run there that were spawned from
// another one ends the job, which names it, and leaves nothing on the others.
func TestMachineLostWithSpawned(t *testing.T) {
	t.Setenv(spawnOrders, "2:3:-")
	t.Setenv(stayWith, "yes")
	file, machines := machineJob(t, "")
	nodes := startOn(t, file, "spawnTree", machines)
	for rank := range 3 {
		nodes[0].awaits(t, nodes[0].out, fmt.Sprintf("[alpha.spawn1.%d] child at", rank))
	}
	for rank := range 12 {
		nodes[rank/6*3].awaits(t, nodes[rank/6*3].out, fmt.Sprintf("[%d] spawned", rank))
	}
	machines[2].Crash()
	rest := slices.Concat(nodes[:2], nodes[3:])
	for i, s := range ends(rest) {
		if log := rest[i].err.String(); s == 0 || !strings.Contains(log, "host 10.77.0.3 is lost") {
			t.Errorf("node %d: status %d", i, s)
		}
	}
	<-nodes[2].over
	for i, m := range machines {
		if !m.Idle() {
			t.Errorf("something is left on machine %d", i)
		}
	}
}

// TestSpawnAfterTheJob: procs that outlive the job that has spawned them spawn others, on the
// machines that are still there: the head stays, on which nothing runs, and the third machine has
// left.
func TestSpawnAfterTheJob(t *testing.T) {
	flag := filepath.Join(t.TempDir(), "go")
	t.Setenv(spawnOrders, "0:1:10.77.0.2")
	t.Setenv(spawnLater, flag)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file, machines := machineJob(t, fmt.Sprintf("spawn { allow = [%q] }\n", self))
	nodes := startOn(t, file, "spawnTree", machines)
	<-nodes[2].over
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i, s := range ends(nodes) {
		if s != 0 {
			t.Errorf("machine %d: status %d", i, s)
		}
	}
	if got := fmt.Sprint(serversOf(nodes[0].out.String(), "alpha.spawn2")); got != "[10.77.0.1 10.77.0.1 10.77.0.2 10.77.0.2]" {
		t.Errorf("the others are at %s", got)
	}
}
