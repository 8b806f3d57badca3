package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/launch/manifest/manifesttest"
	"github.com/openimpi/impi/internal/netns"
)

// podJob is machineJob whose hosts are called as pods of two Jobs are, and whose program is in
// their image.
func podJob(t *testing.T) (file string, machines []*netns.Machine) {
	t.Helper()
	file, machines = machineJob(t, "")
	t.Setenv("PLAIN", "$(TMPDIR)")
	t.Setenv("HIDDEN", "a b")
	self, err := os.Executable()
	b, err2 := os.ReadFile(file)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{
		"10.77.0.1:7800": "alpha-0.alpha:7800", "10.77.0.[1-3]": "alpha-[0-2].alpha", "10.77.0.[4-6]": "beta-[0-2].beta",
		fmt.Sprintf("[%q]", self): `["/app/ring", "$(TMPDIR) a b"]  env = { FOR_PROGRAM = "${env.PLAIN} ${env.HIDDEN}" }`,
	} {
		b = bytes.Replace(b, []byte(from), []byte(to), 1)
	}
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
	serveNames(t, machines[0], "10.77.0.1:5300")
	return file, machines
}

// podsOf runs the pods of a site of podJob, by the manifest that impi-node prints.
func podsOf(t *testing.T, checker, file, site, mode string, machines []*netns.Machine) []*pod {
	t.Helper()
	status, out, errs := impiNode(t, "", "manifest", "kubernetes", file, "-image", "ring:1", "-site", site, "-secrets", "-secret-variable", "HIDDEN")
	if status != statusOK {
		t.Fatalf("status %d: %s", status, errs)
	}
	return startKubelet(t, checker, out, mode, machines).pods
}

// TestPods: the pods of the manifests for Kubernetes run the job. Nodes find their places by the
// indices of their pods, while names get their addresses late.
func TestPods(t *testing.T) {
	checker := manifesttest.Checker(t, manifestCheck)
	file, machines := podJob(t)
	pods := slices.Concat(podsOf(t, checker, file, "alpha", "meet", machines[:3]), podsOf(t, checker, file, "beta", "meet", machines[3:]))
	nodes := make([]*machineNode, 6)
	for i, p := range pods {
		nodes[i] = p.start(t)
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
	more := *pods[0]
	more.env = append(slices.Clone(more.env), "JOB_COMPLETION_INDEX=3")
	n := more.start(t)
	if s := ends([]*machineNode{n}); s[0] != statusUsage || !strings.Contains(n.err.String(), "this is container 3, as JOB_COMPLETION_INDEX says, but site alpha has the hosts 0 to 2") {
		t.Errorf("status %d: %s", s[0], n.err)
	}
}

// TestPodsAreReady: a pod is ready once its node runs, although the head of its site is not there
// yet, and not without a node, or with one that does not answer. Kubernetes is told by the
// manifest's probe.
func TestPodsAreReady(t *testing.T) {
	checker := manifesttest.Checker(t, manifestCheck)
	file, machines := podJob(t)
	pods := podsOf(t, checker, file, "alpha", "block", machines[:3])
	awaitReady := func(p *pod, n *machineNode) (text string) {
		t.Helper()
		for status := -1; status != statusOK; {
			select {
			case <-n.over:
				t.Fatalf("%s has ended, status %d: %s", p.name, status, text)
			default:
				status, text = p.ready(t)
			}
		}
		return text
	}
	if status, text := pods[2].ready(t); status != statusNoJob {
		t.Errorf("without a node: status %d: %s", status, text)
	}
	second := pods[2].start(t)
	second.awaits(t, second.err, "waiting for the head of the site") // names are known, which take a while
	if text := awaitReady(pods[2], second); !strings.Contains(text, `"phase": "starting"`) {
		t.Errorf("it waits for its head, and says:\n%s", text)
	}
	_ = second.cmd.Process.Signal(syscall.SIGSTOP)
	if status, text := pods[2].ready(t); status != statusPartial {
		t.Errorf("with a node that is stopped: status %d: %s", status, text)
	}
	_ = second.cmd.Process.Signal(syscall.SIGCONT)
	head := pods[0].start(t)
	awaitReady(pods[0], head)
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

// TestPodWithAnOldAddress: the name of a pod that was started again has the address of the one
// before it for a while, and is asked for until it has that of this pod.
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
