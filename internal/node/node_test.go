package node

import (
	"os"
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
)

func TestOneSite(t *testing.T) {
	all := start(t, testJob("ring", 3))
	wantNone(t, all)
	out := all[0].out.String()
	for _, line := range []string{"[0] rank 0 of 3\n", "[2] rank 2 of 3\n", "[0] token 3\n"} {
		if !strings.Contains(out, line) {
			t.Errorf("%q is missing in:\n%s", line, out)
		}
	}
}

func TestOneProc(t *testing.T) {
	all := start(t, testJob("ring", 1))
	wantNone(t, all)
}

func TestTwoSitesDirect(t *testing.T) {
	all := start(t, testJob("ring", 2, 2))
	wantNone(t, all)
	if got := all[0].out.Line(t, "[0] token "); got != "4" {
		t.Errorf("the token came back as %s", got)
	}
	if log := all[1].err.String(); !strings.Contains(log, "direct link: rank=2 peer=1 transport=unix") &&
		!strings.Contains(log, "rank=2 peer=1 transport=unix") {
		t.Errorf("ranks 1 and 2 did not link:\n%s", log)
	}
}

func TestTwoSitesByTheirAgents(t *testing.T) {
	all := start(t, route(testJob("ring", 2, 2), config.Route{Prefer: []string{"tcp"}}))
	wantNone(t, all)
	if got := all[0].out.Line(t, "[0] token "); got != "4" {
		t.Errorf("the token came back as %s", got)
	}
	for _, r := range all {
		if strings.Contains(r.err.String(), "direct link:") {
			t.Error("there was a direct link")
		}
	}
}

func TestThreeSitesEverybodyAtOnce(t *testing.T) {
	all := start(t, testJob("all", 2, 1, 2))
	wantNone(t, all)
	for i, prefix := range []string{"[0] sum ", "[2] sum ", "[4] sum "} {
		if got := all[i].out.Line(t, prefix); got != "10" {
			t.Errorf("%s%s", prefix, got)
		}
	}
}

func TestSiteWithTwoHosts(t *testing.T) {
	job := testJob("all", 3, 1)
	h := job.Sites[0].Hosts[0]
	h.Procs = 2
	job.Sites[0].Hosts = []config.Host{h, {Address: h.Address, Procs: 1}}
	wantNone(t, start(t, route(job, config.Route{Prefer: []string{"tcp"}})))
}

func TestTwoJobsAtOnce(t *testing.T) {
	one, two := start(t, testJob("all", 2, 1)), start(t, testJob("all", 2, 1))
	wantNone(t, one)
	wantNone(t, two)
}

func TestStdinGoesToRankZero(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("one\ntwo\n"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	all := start(t, testJob("echo", 2), func(o *Options) { o.Stdin = r })
	wantNone(t, all)
	out := all[0].out.String()
	if !strings.Contains(out, "[0] read one\n") || !strings.Contains(out, "[0] read two\n") || strings.Contains(out, "[1] read") {
		t.Error(out)
	}
}

func TestNothingIsLeftInTheRunDirectory(t *testing.T) {
	all := start(t, testJob("ring", 2))
	wantNone(t, all)
	if _, err := os.Stat(all[0].n.dir.Path); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", all[0].n.dir.Path, err)
	}
}
