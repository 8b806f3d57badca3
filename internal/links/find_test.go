package links

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestSurvey(t *testing.T) {
	alive := serve(t, func(_ context.Context, r Request) Answer {
		return Answer{Node: &Node{NodeInfo: NodeInfo{Job: "ring", Site: "alpha", Client: 1, PID: 7}, Unused: r.AllUpTo}}
	})
	old := serve(t, func(context.Context, Request) Answer { return Answer{Error: "this node does not know it"} })
	noNode := t.TempDir()
	dead := t.TempDir()
	stale(t, filepath.Join(dead, SocketName))
	found := Survey(context.Background(), []string{alive, noNode, dead, old, "/nonexistent"}, time.Minute, Request{AllUpTo: 5})
	if len(found) != 2 {
		t.Fatalf("%+v", found)
	}
	if f := found[0]; f.Dir != old || f.Node != nil || f.Err == nil || f.Err.Error() != "this node does not know it" {
		t.Errorf("%+v", f)
	}
	if f := found[1]; f.Dir != alive || f.Node == nil || f.About.Site != "alpha" || f.Node.Unused != 5 {
		t.Errorf("%+v", f)
	}
}

// stale leaves a socket at which nobody listens any more.
func stale(t *testing.T, path string) {
	t.Helper()
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestSurveyNamesTheStopped: the node of a socket that is not served is known by
// what lies beside it, and the kernel tells that its process is stopped.
func TestSurveyNamesTheStopped(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(cmd.Process.Pid, &ws, syscall.WUNTRACED, nil); err != nil || !ws.Stopped() {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ln, err := net.Listen("unix", filepath.Join(dir, SocketName))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	about := `{"job":"ring","id":"0123","site":"beta","client":1,"pid":` + itoa(cmd.Process.Pid) + `}`
	if err := os.WriteFile(filepath.Join(dir, AboutName), []byte(about), 0o600); err != nil {
		t.Fatal(err)
	}
	found := Survey(context.Background(), []string{dir}, 20*time.Millisecond, Request{})
	if len(found) != 1 || !errors.Is(found[0].Err, ErrSilent) || !strings.Contains(found[0].Err.Error(), "is stopped") {
		t.Fatalf("%+v", found)
	}
	if a := found[0].About; a.Site != "beta" || a.ID != "0123" || a.PID != cmd.Process.Pid {
		t.Errorf("%+v", a)
	}
}

func TestReadAbout(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "4711-123")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if a := readAbout(dir); a != (NodeInfo{PID: 4711}) {
		t.Errorf("without a file: %+v", a)
	}
	for text, want := range map[string]NodeInfo{
		`{"site":"x","pid":5}`: {Site: "x", PID: 5},
		`{"site":"x"`:          {PID: 4711},
		strings.Repeat(" ", maxAbout) + `{"site":"x"}`: {PID: 4711},
	} {
		if err := os.WriteFile(filepath.Join(dir, AboutName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if a := readAbout(dir); a != want {
			t.Errorf("%.20q: %+v, want %+v", text, a, want)
		}
	}
}

// TestSitesThatStart: sites that were started one by one are one job before it has an ID, as they
// have one server, and when one of them knows the ID before the others.
func TestSitesThatStart(t *testing.T) {
	node := func(pid, client int, id, server string) FoundNode {
		a := NodeInfo{Job: "heat", ID: id, Site: string(rune('a' + client)), Client: client, PID: pid, Parent: pid - 1, Server: server}
		return FoundNode{Dir: itoa(pid), About: a, Node: &Node{NodeInfo: a, State: NodeStarting}}
	}
	const at = "10.0.0.9:7800"
	for name, c := range map[string]struct {
		found []FoundNode
		want  string // sites of each job
	}{
		"nobody knows the ID":     {[]FoundNode{node(10, 0, "", at), node(20, 1, "", at), node(30, 2, "", at)}, "abc"},
		"one knows it":            {[]FoundNode{node(10, 0, "", at), node(20, 1, "f00d", at), node(30, 2, "", at)}, "abc"},
		"other servers":           {[]FoundNode{node(10, 0, "", at), node(20, 1, "", "10.0.0.8:7800")}, "a b"},
		"any port":                {[]FoundNode{node(10, 0, "", ""), node(20, 1, "", "")}, "a b"},
		"the same again":          {[]FoundNode{node(10, 0, "", at), node(20, 0, "", at)}, "a a"},
		"the same again, running": {[]FoundNode{node(10, 0, "", at), node(20, 0, "f00d", at), node(30, 1, "f00d", at)}, "a ab"},
		"two IDs":                 {[]FoundNode{node(20, 0, "beef", at), node(30, 1, "f00d", at)}, "a b"},
	} {
		var got []string
		for _, j := range Merge(withOthers(c.found)) {
			sites := ""
			for _, s := range j.Sites {
				sites += s.Name
			}
			got = append(got, sites)
		}
		slices.Sort(got)
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %s, want %s", name, s, c.want)
		}
	}
}

// TestHostsThatStart: the nodes of a site's hosts that were started apart are one job before it has
// an ID, as they tell of each other; those of another job are not of it.
func TestHostsThatStart(t *testing.T) {
	about := func(pid, number int) NodeInfo {
		return NodeInfo{Job: "heat", Site: "alpha", PID: pid, Parent: pid - 1, Host: "10.0.0." + itoa(number+1), Number: number}
	}
	node := func(pid, number int, other NodeInfo) FoundNode {
		n := &Node{NodeInfo: about(pid, number), State: NodeStarting, Waits: "site beta", Procs: []Proc{{Rank: -1, PID: pid + 1}}}
		return FoundNode{Dir: itoa(pid), About: n.NodeInfo, Node: n, others: []HostAnswer{{About: other, Node: &Node{NodeInfo: other, State: NodeStarting}}}}
	}
	jobs := Merge(withOthers([]FoundNode{
		node(10, 0, about(20, 1)), node(20, 1, about(10, 0)),
		node(30, 0, about(40, 1)), node(40, 1, about(30, 0)),
	}))
	if len(jobs) != 2 {
		t.Fatalf("%d jobs: %+v", len(jobs), jobs)
	}
	for _, j := range jobs {
		if len(j.Sites) != 1 || len(j.Sites[0].Nodes) != 2 || len(j.Sites[0].Ranks) != 2 || j.Sites[0].Waits != "site beta" {
			t.Errorf("%+v", j.Sites)
		}
	}
}
