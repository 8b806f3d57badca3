// Package slurmtest runs a real Slurm on this machine for a test: slurmctld, munged and a slurmd
// for each node, with ports, keys, sockets and folders of their own. Several can run at once, and
// the machine's own Slurm is not touched.
package slurmtest

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/openimpi/impi/internal/launch/daemons"
	"github.com/openimpi/impi/internal/skips"
)

// CPUs is the number of CPUs that each node claims to have.
const CPUs = 2

// Cluster is a running Slurm. Its nodes are n1, n2, ..., each idle, with the addresses 127.0.0.11,
// 127.0.0.12, ...; root may use it.
type Cluster struct {
	*daemons.Group

	tb   daemons.TB
	conf string
}

// Start starts a Slurm with some nodes, and waits until they take jobs. It ends with the test.
// Where Slurm is not installed the test is skipped.
func Start(tb daemons.TB, nodes int) *Cluster {
	tb.Helper()
	for program, of := range map[string]string{"slurmctld": "slurmctld", "slurmd": "slurmd", "srun": "slurm-client", "munged": "munge"} {
		skips.ProgramOf(tb, program, of)
	}
	g := daemons.New(tb, "slurm")
	c := &Cluster{Group: g, tb: tb}
	host, err := os.Hostname()
	if err != nil {
		tb.Fatal(err)
	}
	host, _, _ = strings.Cut(host, ".")
	key := make([]byte, 1024)
	_, _ = rand.Read(key)
	g.File("key", string(key), 0o400)
	c.conf = g.File("slurm.conf", config(tb, g.Dir, host, nodes), 0o644)

	g.Do("export SLURM_CONF=" + c.conf)
	g.Do("munged --foreground --socket=$PWD/munge --key-file=$PWD/key --pid-file=$PWD/munge.pid --seed-file=$PWD/seed --log-file=$PWD/munge.log &")
	g.Await("Created socket", 1)
	g.Do("slurmctld -D -f $SLURM_CONF &")
	for n := 1; n <= nodes; n++ {
		name := fmt.Sprintf("n%d", n)
		g.Do("mkdir " + name)
		g.Machine(name, "slurmd -D -N "+name)
	}
	g.Await("Running as primary controller", 1)
	g.Await("slurmd started", nodes)
	c.Run("srun", "--quiet", fmt.Sprintf("--nodes=%d", nodes), "true") // waits until all nodes are there
	return c
}

// config returns slurm.conf. Its ports are free on all addresses, since slurmd listens on all of
// them.
func config(tb daemons.TB, dir, host string, nodes int) string {
	ports := free(tb, nodes+1)
	var b strings.Builder
	fmt.Fprintf(&b, `ClusterName=impi
SlurmctldHost=%s(127.0.0.1)
SlurmctldPort=%d
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=%[3]s/munge
StateSaveLocation=%[3]s
SlurmctldPidFile=%[3]s/slurmctld.pid
SlurmdSpoolDir=%[3]s/%%n
TmpFS=%[3]s/%%n
SlurmdPidFile=%[3]s/%%n.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_min_interval=0
ReturnToService=2
KillWait=2
MpiDefault=none
`, host, ports[nodes], dir)
	for n := 1; n <= nodes; n++ {
		fmt.Fprintf(&b, "NodeName=n%d NodeHostname=%s NodeAddr=127.0.0.%d Port=%d CPUs=%d RealMemory=100\n", n, host, 10+n, ports[n-1], CPUs)
	}
	fmt.Fprintf(&b, "PartitionName=p Nodes=n[1-%d] Default=YES State=UP OverSubscribe=YES\n", nodes)
	return b.String()
}

// free returns TCP ports on which nobody listens. They are below the kernel's ephemeral ports, of
// which another test might get one before its daemon has it.
func free(tb daemons.TB, n int) (ports []int) {
	tb.Helper()
	given := 32768
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		_, _ = fmt.Sscan(string(text), &given)
	}
	for len(ports) < n {
		l, err := net.Listen("tcp", fmt.Sprint(":", given/2+mathrand.IntN(given/2)))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			tb.Fatal(err)
		}
		defer l.Close() // closed only at the end, so that they differ
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// Env returns the environment variables that programs need to use this Slurm.
func (c *Cluster) Env() []string { return []string{"SLURM_CONF=" + c.conf} }

// Allocate gets a job of this Slurm that lasts as long as a test or subtest, and returns the
// environment in it. salloc is not killed, but ends by itself, as it has to release the job.
func (c *Cluster) Allocate(tb daemons.TB, options ...string) (environ []string) {
	tb.Helper()
	cmd := exec.Command("salloc", append(append([]string{"--quiet"}, options...), "sh", "-c", `env -0; printf '\001'; read forever`)...)
	cmd.Env = append(os.Environ(), c.Env()...)
	stdin, e1 := cmd.StdinPipe()
	stdout, e2 := cmd.StdoutPipe()
	if err := errors.Join(e1, e2, cmd.Start()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait() // the job may have been cancelled
	})
	text, err := bufio.NewReader(stdout).ReadString('\001')
	if err != nil {
		tb.Fatalf("salloc: %v", err)
	}
	return strings.Split(strings.TrimSuffix(text, "\x00\001"), "\x00")
}

// Run runs a program that uses this Slurm to its end, and returns what it printed.
func (c *Cluster) Run(name string, args ...string) string {
	c.tb.Helper()
	return daemons.Run(c.tb, c.Env(), name, args...)
}
