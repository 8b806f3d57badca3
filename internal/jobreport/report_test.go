package jobreport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/wireup"
)

const hostile = `</script><script>alert("x")</script>&'<img src=//evil.example>` + "\x00\x1b[31m\xff"

// sample is a job of sites with so many procs each, of which each has sent to the next one and
// waited for it.
func sample(sites []string, procs int) (*LatestAnswers, []links.Site) {
	k := &LatestAnswers{}
	var all []links.Site
	total := procs * len(sites)
	for c, name := range sites {
		all = append(all, links.Site{Name: name, Client: c, Own: true, First: c * procs, Procs: procs})
		n := &links.Node{NodeInfo: links.NodeInfo{Site: name, Client: c, ID: "a1b2"}, Hosts: []links.Host{{Rank: c, Address: fmt.Sprintf("10.0.0.%d", c+1)}}}
		for i := range procs {
			rank := c*procs + i
			a := &wireup.Account{Time: 10e9, Calls: []wireup.CallSum{
				{Name: "MPI_Send", Class: "send", Calls: 5, Time: 1e9}, {Name: "MPI_Ssend", Class: "send", Calls: 1, Time: int64(rank)}, {Name: "MPI_Recv", Class: "recv", Calls: 7, Time: 2e9},
			}}
			a.Waits = []wireup.WaitSum{{Cause: "recv", Peer: (rank + 1) % total, Time: 1e9 + int64(rank)}, {Cause: "other", Peer: wireup.NoPeer, Time: 5}, {Cause: "board", Peer: rank}}
			a.Sent = []wireup.SentSum{{Peer: (rank + 1) % total, Messages: 3, Bytes: 3000}}
			n.Procs = append(n.Procs, links.Proc{Rank: rank, Host: c, State: links.ProcFinished, Account: a})
		}
		n.Views = []links.View{ // of two pairs, the first as both ends tell of it
			{Local: 10 * c, Peer: 10*c + 1, State: links.StateLinked, Transport: "tcp", Dialled: true, Resumes: 2}, {Local: 10*c + 1, Peer: 10 * c, State: links.StateLinked, Transport: "tcp"},
			{Local: 10 * c, Peer: 10*c + 2, State: links.StateLinked, Transport: "tcp", Resumes: 1},
		}
		for i, text := range []string{"the job runs", "the job's server is lost", "it is strange", "the job's server is lost"} {
			n.Log = append(n.Log, links.LogLine{At: time.Unix(1e9+int64(i), int64(c)), Level: map[bool]string{true: "info", false: "warn"}[i == 0], Text: text})
		}
		n.Channels = []links.Channel{{From: 0, To: 1, State: links.StateLost, Transport: "quic", Resumes: 4, Lost: "reset by peer"}}
		n.Transports = []links.Transport{{Name: "tcp", State: "healthy", Starts: 2, Error: "it was killed"}}
		k.Add(links.Answer{Node: n}, time.Unix(1e9, 0))
	}
	return k, all
}

func reported(sites []string, procs int) *Report {
	r := &Report{Job: sites[0], By: sites[0], Began: time.Unix(1e9, 0), Ended: time.Unix(1e9+20, 0)}
	k, all := sample(sites, procs)
	k.Fill(r, all)
	return r
}

// TestInit: MPI_Init is a call, and a class of its own.
func TestInit(t *testing.T) {
	k := &LatestAnswers{}
	k.Add(links.Answer{Node: &links.Node{Procs: []links.Proc{{Rank: 0, Account: &wireup.Account{Time: 9, Init: 5}}, {Rank: 1, Account: &wireup.Account{Time: 9, Init: 7}}}}}, time.Time{})
	r := &Report{}
	k.Fill(r, []links.Site{{Procs: 2}})
	if len(r.Calls) != 1 || r.Calls[0] != (Call{"MPI_Init", "init", 2, 12, 7, 1}) || r.Ranks[1].Classes["init"] != 7 || r.Ranks[1].Time != 9 {
		t.Errorf("%+v", r)
	}
}

func TestReport(t *testing.T) {
	r := reported([]string{"alpha", "beta"}, 2)
	if !r.Whole || r.ByHost || len(r.Ranks) != 4 || r.Ranks[3].Rank != 3 || r.Ranks[3].Site != "beta" || r.Ranks[3].Host != "10.0.0.2" {
		t.Errorf("%+v", r)
	}
	if x := r.Ranks[2]; x.Classes["send"] != 1e9+2 || x.Classes["recv"] != 2e9 || x.Waited != 1e9+2+5 || x.Time != 10e9 || x.Calls["MPI_Ssend"] != 2 || x.Calls["MPI_Recv"] != 2e9 {
		t.Errorf("rank 2: %+v", x)
	}
	if c := r.Calls[0]; c != (Call{"MPI_Recv", "recv", 28, 8e9, 2e9, 0}) {
		t.Errorf("%+v", c)
	}
	if c := r.Calls[2]; c != (Call{"MPI_Ssend", "send", 4, 6, 3, 3}) {
		t.Errorf("%+v", c)
	}
	if w := r.Waits[0]; w != (Wait{3, 0, "recv", 1e9 + 3}) || len(r.Waits) != 8 {
		t.Errorf("%+v", r.Waits)
	}
	if len(r.Sent) != 4 || r.Sent[1] != (Sent{1, 2, 3, 3000}) {
		t.Errorf("%+v", r.Sent)
	}
	if len(r.Links) != 2 || r.Links[1].Resumes != 6 || r.Links[1].Count != 4 || r.Links[0].Lost != "reset by peer" || r.Plugins[1].Site != "beta" || r.Plugins[0].Starts != 2 || r.Links[0].Count != 1 || r.Links[0].Resumes != 4 || r.Plugins[1].Host != "10.0.0.2" {
		t.Errorf("%+v %+v", r.Links, r.Plugins)
	}
}

// TestByRankAndCall: the calls in which all ranks were longest are listed by rank.
func TestByRankAndCall(t *testing.T) {
	k, procs := &LatestAnswers{}, []links.Proc{{Rank: 0}, {Rank: 1}}
	for i := range procs {
		a := &wireup.Account{Time: 100}
		for c := range mostByRank + 2 {
			a.Calls = append(a.Calls, wireup.CallSum{Name: fmt.Sprintf("MPI_%d", c), Class: "send", Calls: 1, Time: int64(c + 1)})
		}
		procs[i].Account = a
	}
	k.Add(links.Answer{Node: &links.Node{Procs: procs}}, time.Time{})
	r := &Report{}
	k.Fill(r, []links.Site{{Procs: len(procs)}})
	var b bytes.Buffer
	if err := r.HTML(&b); err != nil {
		t.Fatal(err)
	}
	for _, x := range r.Ranks {
		if len(x.Calls) != mostByRank || x.Calls["MPI_1"] != 0 || x.Calls["MPI_2"] != 3 || x.Calls["MPI_9"] != 10 {
			t.Errorf("%+v", x)
		}
	}
	if page := b.String(); !strings.Contains(page, "By rank and call, of the 8 calls") || strings.Count(page, "<th>MPI_9</th>") != 1 {
		t.Errorf("the page has no table by rank and call:\n%s", page)
	}
}

// TestDifferentMoments: above each table it is said which figures are as of when, host by host, if
// a node has not told the end of its procs.
func TestDifferentMoments(t *testing.T) {
	k, sites := sample([]string{"alpha", "beta"}, 2)
	page := func() string {
		r := &Report{}
		k.Fill(r, sites)
		var b bytes.Buffer
		if err := r.HTML(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	const note = "These figures are of different moments"
	if strings.Contains(page(), note) {
		t.Error("figures to the end are said to be of different moments")
	}
	k.Add(links.Answer{Node: &links.Node{NodeInfo: links.NodeInfo{Site: "gamma", Client: 2, Host: "10.0.0.9"},
		Procs: []links.Proc{{Rank: 4, State: links.ProcRunning, Account: &wireup.Account{Time: 1}}}}}, time.Unix(1e9-60, 0).UTC())
	sites = append(sites, links.Site{Name: "gamma", Client: 2, Own: true, First: 4, Procs: 2}, links.Site{Name: "delta", Client: 3, Own: true, First: 6, Procs: 1})
	got := page()
	for _, want := range []string{
		note + ": those of 3 places are not to the end", "1 proc on host 10.0.0.9 of site gamma: as of 2001-09-09 01:45:40.000 UTC, when their node answered last",
		"site gamma: a part: not all of its hosts have answered", "site delta: nothing: its nodes have not answered",
	} {
		if n := strings.Count(got, want); n != 5 { // calls, ranks, waits, messages, links
			t.Errorf("%d times %q", n, want)
		}
	}
}

// TestFaults: what the nodes have logged of faults is in the file with its time, equal lines once,
// and stays when a node that ends has no log any more.
func TestFaults(t *testing.T) {
	k, sites := sample([]string{"alpha", "beta"}, 1)
	last := *k.nodes[nodeKey{0, "alpha", "", 0}].node
	last.Log = nil
	k.Add(links.Answer{Node: &last}, time.Unix(2e9, 0))
	r := &Report{}
	k.Fill(r, sites)
	at := func(i, c int) time.Time { return time.Unix(1e9+int64(i), int64(c)) }
	want := []Fault{
		{at(2, 0), 1, "warn", "alpha", "10.0.0.1", "it is strange"}, {at(2, 1), 1, "warn", "beta", "10.0.0.2", "it is strange"},
		{at(3, 0), 2, "warn", "alpha", "10.0.0.1", "the job's server is lost"}, {at(3, 1), 2, "warn", "beta", "10.0.0.2", "the job's server is lost"},
	}
	if !slices.Equal(r.Faults, want) {
		t.Errorf("%+v", r.Faults)
	}
	var b bytes.Buffer
	if err := r.HTML(&b); err != nil || strings.Count(b.String(), "<td class=\"t\">the job&#39;s server is lost</td>") != 2 || !strings.Contains(b.String(), "<td class=\"t\">"+clock(at(3, 1))) {
		t.Errorf("%v: %s", err, b.String())
	}
}

// TestKnown: who has not spoken to the end is named, and what was known before is kept.
func TestKnown(t *testing.T) {
	k, sites := sample([]string{"alpha", "beta"}, 2)
	if more := (links.Site{Name: "alpha", Own: true, Procs: 3}); !k.Complete(sites[0]) || !k.Complete(sites[1]) || k.Complete(more) {
		t.Error("who is complete?")
	}
	k.Add(links.Answer{Node: &links.Node{NodeInfo: links.NodeInfo{Site: "alpha"}, Procs: []links.Proc{{Rank: 0, State: links.ProcEnded}, {Rank: 1, State: links.ProcEnded}}}}, time.Now())
	running := *k.nodes[nodeKey{1, "beta", "", 0}].node
	running.Procs = slices.Clone(running.Procs)
	running.Procs[1].State = links.ProcRunning
	k.Add(links.Answer{Others: []links.HostAnswer{{Node: &running}, {Error: "gone"}}}, time.Unix(2e9, 0))
	sites = append(sites, links.Site{Name: "lam", Client: 2}, links.Site{Name: "gamma", Client: 3, Own: true, Procs: 1})
	var r Report
	k.Fill(&r, sites)
	if r.Whole || len(r.Calls) != 3 || r.Ranks[0].Time == 0 {
		t.Errorf("%+v", r)
	}
	for i, want := range []string{"to the end", "as of 2033-05-18T03:33:20Z, while it ran", "nothing: it runs another MPI", "nothing: its nodes have not answered"} {
		if !strings.HasPrefix(r.Sites[i].Known, want) {
			t.Errorf("%+v, want %q", r.Sites[i], want)
		}
	}
}

// TestHostileNames: nothing of what others have written becomes markup or a script.
func TestHostileNames(t *testing.T) {
	r := reported([]string{hostile, "beta"}, 2)
	r.Failure, r.Config = hostile, hostile
	r.Ranks[0].State, r.Plugins[0].Error, r.Links[0].Lost, r.Calls[0].Name = hostile, hostile, hostile, hostile
	r.Versions = []Version{{hostile, hostile}}
	r.Ranks[0].Classes[hostile] = 1
	r.Calls[0].Class = hostile
	r.Waits[0].Cause = hostile
	var b bytes.Buffer
	if err := r.HTML(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if n := strings.Count(text, "<script"); n != 1 || strings.Contains(text, "<img") || strings.Count(text, "</script>") != 1 {
		t.Errorf("%d scripts", n)
	}
	if tags := regexp.MustCompile(`<(/?[a-z0-9]+)`).FindAllStringSubmatch(text, -1); len(tags) < 100 {
		t.Error("where is the page?")
	}
	for _, bad := range []string{"http://", "https://", "src=", "@import", "url("} {
		if strings.Contains(strings.ReplaceAll(text, "src=//evil.example", ""), bad) {
			t.Errorf("the file is not by itself: %s", bad)
		}
	}
	path := filepath.Join(t.TempDir(), "x.html")
	if err := r.Save(path); err != nil {
		t.Fatal(err)
	}
	back, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.ToValidUTF8(hostile, "\uFFFD"); back.Failure != want || back.Ranks[0].State != want {
		t.Errorf("%q", back.Failure)
	}
	var out bytes.Buffer
	if err := errors.Join(Show(&out, back), Text(&out, Compare(back, reported([]string{"a", "beta"}, 2)))); err != nil || strings.ContainsAny(out.String(), "\x00\x1b") {
		t.Errorf("%v, or control characters", err)
	}
}

// TestSize: files of large jobs stay small, and say what they leave out.
func TestSize(t *testing.T) {
	for _, c := range []struct{ procs, ranks, left int }{{64, 128, 0}, {512, 1024, 0}, {2000, 1024, 2976}} {
		r := reported([]string{"alpha", "beta"}, c.procs)
		var b bytes.Buffer
		if err := r.HTML(&b); err != nil {
			t.Fatal(err)
		}
		if b.Len() > 3<<20 || len(r.Ranks) != c.ranks || r.Left != c.left || !r.Whole {
			t.Errorf("%d procs: %d bytes, %d ranks", 2*c.procs, b.Len(), len(r.Ranks))
		}
		if byHost := c.procs > 64; r.ByHost != byHost || byHost && (len(r.Sent) != 4 || r.who(r.Sent[0].From) != "alpha 10.0.0.1" && r.who(r.Sent[0].From) != "beta 10.0.0.2") {
			t.Errorf("%d procs: by host %v, %+v", 2*c.procs, r.ByHost, r.Sent)
		}
	}
}

func TestCompare(t *testing.T) {
	a, b := reported([]string{"alpha"}, 2), reported([]string{"alpha"}, 2)
	if d := Compare(a, b); len(d) != 0 {
		t.Fatalf("%+v", d)
	}
	b.Ranks[1].Classes["recv"] += 5e9
	b.Ranks[0].Classes["send"] -= 1e6
	b.Calls[0].Time += 5e9
	b.Calls[0].Calls += 3
	b.Sent[1].Messages *= 4
	b.Links[0].Resumes += 2
	b.Plugins[0].Starts = 0
	b.Waits[0].Time -= 4e8
	b.Sent[0].Bytes = 9000
	b.Versions = []Version{{"impi", "0.2.0"}}
	a.Config, b.Config = "x\na = 1\ny\nx", "x\na = 2\ny"
	b.Status = 3
	got := Compare(a, b)
	var lines []string
	for _, d := range got {
		lines = append(lines, fmt.Sprintf("%s|%s|%s|%s|%d", d.What, d.Of, d.A, d.B, d.Change))
	}
	want := []string{
		"run|exit status|0|3|0", "class|recv|4.00 s|9.00 s|5000000000", "call|MPI_Recv|4.00 s|9.00 s|5000000000", "calls|MPI_Recv|14|17|3",
		"rank|1 recv|2.00 s|7.00 s|5000000000", "rank|0 send|1.00 s|999.0 ms|-1000000", "wait|1 for 0, recv|1.00 s|600.0 ms|-400000000",
		"sent|0 to 1|3.00 kB|9.00 kB|6000",
		"messages|1 to 0|3|12|9", "resumes|channels, lost by quic|4|6|2", "starts|tcp at alpha 10.0.0.1|2|0|-2", "version|impi||0.2.0|0", "config||x||0", "config||a = 1||0", "config|||a = 2|0",
	}
	for i := range got {
		got[i].small, got[i].part = false, "" // not in JSON
	}
	if !slices.Equal(lines, want) {
		t.Errorf("%s", strings.Join(lines, "\n"))
	}
	dir := t.TempDir()
	first, second := filepath.Join(dir, "a.html"), filepath.Join(dir, "b.html")
	if err := errors.Join(a.Save(first), b.Save(second)); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if s := Command().Execute([]string{"diff", first, second}, &out, &errs); s != statusOK || !strings.Contains(out.String(), "  1 recv  2.00 s  -> 7.00 s  +5.00 s  x 3.5\n  and 1 with less change (-json has all)\n") {
		t.Errorf("%d: %s%s", s, out.String(), errs.String())
	}
	for _, want := range []string{"  - a = 1\n", "+21 %", "-40 %", "gone\n", "x 4.0\n", "+6.00 kB", "  exit status  0  -> 3\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	const notCompared = "(arguments, env and what else may be secret) is not in reports: it was not compared"
	if strings.Contains(out.String(), notCompared) {
		t.Errorf("nothing is hidden: %s", out.String())
	}
	a.Config, b.Config = "args = [\"…\"]", "args = [\"…\"]"
	out.Reset()
	if err := print("diff", []*Report{a, b}, false, &out); err != nil || !strings.Contains(out.String(), notCompared) {
		t.Errorf("%v: %s", err, out.String())
	}
	out.Reset()
	var parsed struct{ Differences []Difference }
	if s := Command().Execute([]string{"diff", "-json", first, second}, &out, &errs); s != statusOK || json.Unmarshal(out.Bytes(), &parsed) != nil || !slices.Equal(parsed.Differences, got) {
		t.Errorf("%d: %s", s, out.String())
	}
}

func TestCommandRefuses(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var whole bytes.Buffer
	if err := reported([]string{"alpha"}, 1).HTML(&whole); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want int
		text string
	}{
		{nil, cmdline.StatusUsage, "give a command: diff, show"},
		{[]string{"draw", "x"}, cmdline.StatusUsage, `no command "draw"; known here: diff, show`},
		{[]string{"diff", "x"}, cmdline.StatusUsage, "give two files"},
		{[]string{"show", filepath.Join(dir, "none")}, statusProblem, "no such file"},
		{[]string{"show", file("empty", "")}, statusProblem, "no report of a job: such a file is written by"},
		{[]string{"show", "x", "y"}, cmdline.StatusUsage, "give one file"},
		{[]string{"show", file("cut", dataBegins+"{}")}, statusProblem, "the report of a job, but cut off"},
		{[]string{"show", file("early", whole.String()[:len(pageBegins)])}, statusProblem, "the report of a job, but cut off"},
		{[]string{"show", file("late", strings.TrimSuffix(whole.String(), dataEnds+"\n</body></html>\n"))}, statusProblem, "the report of a job, but cut off"},
		{[]string{"show", file("other", "<!DOCTYPE html>\n<html></html>\n")}, statusProblem, "no report of a job: such a file is written by"},
		{[]string{"show", file("odd", dataBegins+"[]"+dataEnds)}, statusProblem, "no report of a job: json"},
		{[]string{"show", file("new", dataBegins+`{"schema":99}`+dataEnds)}, statusProblem, "it has schema 99, this program reads 1"},
		{[]string{"-h"}, statusOK, ""},
	} {
		var out, errs bytes.Buffer
		if s := Command().Execute(c.args, &out, &errs); s != c.want || !strings.Contains(errs.String(), c.text) {
			t.Errorf("%q: %d, %s", c.args, s, errs.String())
		}
	}
}

// TestSaveFails: there is neither a part of a file nor a temporary one afterwards.
func TestSaveFails(t *testing.T) {
	dir := t.TempDir()
	r := reported([]string{"alpha"}, 1)
	if err := os.Mkdir(filepath.Join(dir, "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "no", "x.html"), filepath.Join(dir, "taken")} {
		if CheckWritable(path) == nil || r.Save(path) == nil {
			t.Errorf("%s was written", path)
		}
	}
	good := filepath.Join(dir, "x.html")
	if err := errors.Join(CheckWritable(good), r.Save(good), r.Save(good)); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestSaveReplacesOnlyFiles: neither a pipe nor a symbolic link is lost, and only the owner may
// read a report.
func TestSaveReplacesOnlyFiles(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(unix.Mkfifo(at("pipe"), 0o600), os.WriteFile(at("old"), nil, 0o644), os.Symlink(at("old"), at("link"))); err != nil {
		t.Fatal(err)
	}
	for name, kind := range map[string]fs.FileMode{"pipe": fs.ModeNamedPipe, "link": fs.ModeSymlink} {
		if CheckWritable(at(name)) == nil || (&Report{}).Save(at(name)) == nil {
			t.Errorf("%s: no error", name)
		}
		if info, err := os.Lstat(at(name)); err != nil || info.Mode().Type() != kind {
			t.Errorf("%s is now %v, %v", name, info.Mode(), err)
		}
	}
	for _, name := range []string{"old", "new"} {
		if err := (&Report{}).Save(at(name)); err != nil {
			t.Error(err)
		}
		if info, err := os.Stat(at(name)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 4 {
		t.Errorf("%v, %v", all, err)
	}
}

// TestLittleChange: where all that has changed is little, nothing was shown to which it could be "and".
func TestLittleChange(t *testing.T) {
	var b bytes.Buffer
	if err := Text(&b, []Difference{{What: "run", Of: "time", small: true}}); err != nil || b.String() != "Run\n  1 with little change (-json has all)\n" {
		t.Errorf("%v: %q", err, b.String())
	}
}
