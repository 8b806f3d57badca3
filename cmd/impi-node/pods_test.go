package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/netns"
)

// podJob is machineJob whose hosts are called as pods of two Jobs are.
func podJob(t *testing.T) (file string, machines []*netns.Machine) {
	t.Helper()
	file, machines = machineJob(t, "")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{
		"10.77.0.1:7800": "alpha-0.alpha:7800", "10.77.0.[1-3]": "alpha-[0-2].alpha", "10.77.0.[4-6]": "beta-[0-2].beta",
	} {
		b = bytes.Replace(b, []byte(from), []byte(to), 1)
	}
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv(envDNS, "10.77.0.1:5300")
	serveNames(t, machines[0], "10.77.0.1:5300")
	return file, machines
}

// TestPods: nodes that are started as the manifests for Kubernetes have it find their places by the
// indices of their pods, while names get their addresses late.
func TestPods(t *testing.T) {
	file, machines := podJob(t)
	nodes := make([]*machineNode, 6)
	for i := range 6 {
		site := []string{"alpha", "beta"}[i/3]
		nodes[i] = startNode(t, machines[i], "meet", fmt.Sprintf("JOB_COMPLETION_INDEX=%d", i%3), "-config", file, "-site", site)
	}
	for i, s := range ends(nodes) {
		if s != 0 {
			t.Errorf("pod %d: status %d", i, s)
		}
	}
	for rank := range 12 {
		if head := nodes[rank/6*3]; !strings.Contains(head.out.String(), fmt.Sprintf("[%d] met\n", rank)) {
			t.Errorf("the head of site %d has nothing of rank %d", rank/6, rank)
		}
	}
	more := startNode(t, machines[0], "meet", "JOB_COMPLETION_INDEX=3", "-config", file, "-site", "alpha")
	if s := ends([]*machineNode{more}); s[0] != statusUsage || !strings.Contains(more.err.String(), "this is container 3, as JOB_COMPLETION_INDEX says, but site alpha has the hosts 0 to 2") {
		t.Errorf("status %d: %s", s[0], more.err)
	}
}

// readiness is the command by which the manifest has Kubernetes ask whether a pod is ready.
func readiness(t *testing.T, file string) (command []string) {
	t.Helper()
	status, out, errs := impiNode(t, "", "manifest", "kubernetes", file, "-image", "ring:1", "-site", "alpha")
	m := regexp.MustCompile(`readinessProbe:.*\n\s+exec:\n\s+command: \[(.+)\]\n`).FindStringSubmatch(out)
	if status != statusOK || m == nil {
		t.Fatalf("status %d, or no probe:\n%s%s", status, out, errs)
	}
	return strings.Split(m[1], ", ")
}

// TestPodsAreReady: a pod is ready once its node runs, although the head of its site is not there yet,
// and not without a node, or with one that does not answer. Kubernetes is told by the manifest's probe.
func TestPodsAreReady(t *testing.T) {
	file, machines := podJob(t)
	job, err := os.ReadFile(file)
	self, err2 := os.Executable()
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	job = bytes.Replace(job, []byte(self), []byte(programApart), 1)
	probe := readiness(t, file)
	machines = machines[:3]
	setApart(t, machines) // as the probe shows all jobs of a machine
	for _, m := range machines {
		m.Put("/tmp/job.hcl", job, 0o600)
		m.Put("/tmp/job.key", []byte("4242\n"), 0o600)
	}
	t.Setenv("PATH", "/tmp:"+os.Getenv("PATH"))
	t.Setenv("TMPDIR", "/tmp")
	start := func(pod int) *machineNode {
		t.Helper()
		t.Setenv("JOB_COMPLETION_INDEX", strconv.Itoa(pod))
		return startNodeOf(t, "impi-node", machines[pod], "block", "XDG_RUNTIME_DIR=", "-config", "/tmp/job.hcl", "-site", "alpha")
	}
	ready := func(pod int) (status int, text string) {
		cmd := machines[pod].Command(t.Context(), probe[0], probe[1:]...)
		cmd.Env = append(os.Environ(), asNode+"=1")
		b, _ := cmd.CombinedOutput()
		return cmd.ProcessState.ExitCode(), string(b)
	}
	awaitReady := func(pod int, n *machineNode) (text string) {
		t.Helper()
		for status := -1; status != statusOK; {
			select {
			case <-n.over:
				t.Fatalf("pod %d has ended, status %d: %s", pod, status, text)
			default:
				status, text = ready(pod)
			}
		}
		return text
	}
	if status, text := ready(2); status != statusNoJob {
		t.Errorf("without a node: status %d: %s", status, text)
	}
	second := start(2)
	second.awaits(t, second.err, "waiting for the head of the site") // names are known, which take a while
	if text := awaitReady(2, second); !strings.Contains(text, `"phase": "starting"`) {
		t.Errorf("it waits for its head, and says:\n%s", text)
	}
	_ = second.cmd.Process.Signal(syscall.SIGSTOP)
	if status, text := ready(2); status != statusPartial {
		t.Errorf("with a node that is stopped: status %d: %s", status, text)
	}
	_ = second.cmd.Process.Signal(syscall.SIGCONT)
	head := start(0)
	awaitReady(0, head)
	for _, n := range []*machineNode{head, second} {
		_ = n.cmd.Process.Signal(syscall.SIGTERM)
	}
	ends([]*machineNode{head, second})
}

// resolverFunc is a function that gives the addresses of names.
type resolverFunc func(name string) []netip.Addr

func (f resolverFunc) LookupNetIP(_ context.Context, _, name string) ([]netip.Addr, error) {
	return f(name), nil
}

// TestPodWithAnOldAddress: the name of a pod that was started again has the address of the one before
// it for a while, and is asked for until it has that of this pod.
func TestPodWithAnOldAddress(t *testing.T) {
	old, ours := netip.MustParseAddr("10.77.0.9"), netip.MustParseAddr("10.77.0.2")
	asked := 0
	l := &lookup{
		self: "alpha-1.alpha", isLocal: func(a netip.Addr) bool { return a == ours }, pause: func(context.Context, time.Duration) {},
		resolver: resolverFunc(func(name string) []netip.Addr {
			if name == "alpha-0.alpha" {
				return []netip.Addr{netip.MustParseAddr("10.77.0.1")}
			}
			if asked++; asked < 3 {
				return []netip.Addr{old}
			}
			return []netip.Addr{ours}
		}),
	}
	got, missing := l.run(t.Context(), []config.Site{namedSite("alpha", "alpha-0.alpha", "alpha-1.alpha")}, false)
	if len(missing) > 0 || got["alpha-1.alpha"] != ours || got["alpha-0.alpha"].String() != "10.77.0.1" {
		t.Errorf("%v, without %v", got, missing)
	}
}
