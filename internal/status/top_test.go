package status

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/links"
)

// counted is a proc that has sent so many messages.
func counted(rank int, messages uint64, slept time.Duration) links.Proc {
	return links.Proc{Rank: rank, PID: 100 + rank, State: links.ProcRunning, Wait: links.Waiting{State: "computing"},
		Counts: &links.Counts{Messages: messages, Data: messages * 100000, Sent: 7 * messages, Received: 5, Slept: slept}}
}

// press has a screen take keys, and reports whether one of them ends it.
func press(s *screen, list ...keys) (ended bool) {
	for _, k := range slices.Concat(list...) {
		if _, cmd := s.Update(k); cmd != nil {
			ended = true
		}
	}
	return ended
}

type keys []tea.KeyPressMsg

func typed(text string) (list keys) {
	for _, r := range text {
		list = append(list, tea.KeyPressMsg{Code: r, Text: string(r)})
	}
	return list
}

func pressed(code rune) keys { return keys{{Code: code}} }

// shownRanks returns the ranks of the rows on the screen, in their order.
func shownRanks(s *screen) (list string) {
	for _, line := range strings.Split(s.draw(), "\n")[3:] {
		if f := strings.Fields(line); len(f) > 2 && f[1] == "alpha" {
			list += f[0] + " "
		}
	}
	return strings.TrimSpace(list)
}

func TestTop(t *testing.T) {
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	first := job(counted(0, 100, 0), counted(1, 100, 0), waits(2, "MPI_Recv", 3*time.Second, from(0)))
	second := job(counted(0, 110, time.Second), counted(1, 2100, 0), waits(2, "MPI_Recv", 5*time.Second, from(0)))
	first.Pairs = []links.Pair{pair(0, 1, sent(1, 1, 1000), sent(1, 1, 50))}
	second.Pairs = []links.Pair{pair(0, 1, sent(9, 1, 5000), sent(9, 1, 850)), pair(1, 2, sent(1, 1, 0), sent(1, 2, 6000))}
	s := newScreen(nil, time.Second)
	if v := s.draw(); !strings.HasPrefix(v, "asking the nodes\n") {
		t.Errorf("before the first look:\n%s", v)
	}
	s.Update(tea.WindowSizeMsg{Width: 100, Height: 9})
	s.Update(look{&Report{Jobs: []Job{{Job: *first}}}, at})
	if v := s.draw(); strings.Contains(v, " 5 ") || !strings.HasPrefix(v, "12:00:00  job heat: 2 running, 1 blocked\n\nRANK*") {
		t.Errorf("after one look:\n%s", v)
	}
	s.Update(look{&Report{Jobs: []Job{{Job: *second, Deadlock: &Deadlock{For: time.Minute}}}}, at.Add(2 * time.Second)})
	want := `12:00:02  PROBABLE DEADLOCK for 1m0s of job heat: 2 running, 1 blocked

RANK*  HOST   STATE      FOR   MSG/S  SENT/S   RECV/S  ASLEEP  DOES
    0  alpha  running              5  500 kB    400 B    50 %  computing
    1  alpha  running         1.00 k  100 MB  5.00 kB     0 %  computing
    2  alpha  blocked  5.0 s                                   in MPI_Recv (from rank 0, tag 7 in MP


s sort by the next column  r reverse  / filter  l procs or links  p pause  arrows scroll  q quit`
	if v := s.draw(); v != want {
		t.Errorf("got\n%s\nwant\n%s", v, want)
	}
	for _, c := range []struct {
		keys []keys
		want string
	}{
		{[]keys{typed("r")}, "2 1 0"},
		{[]keys{typed("rsss")}, "2 0 1"},                      // for how long they are blocked
		{[]keys{typed("s")}, "1 0 2"},                         // messages
		{[]keys{typed("SS")}, "2 0 1"},                        // state
		{[]keys{typed("/mpi_"), typed("RECV")}, "2"},          // a filter
		{[]keys{pressed(tea.KeyEnter), typed("s")}, "2"},      // it stays
		{[]keys{typed("/x"), pressed(tea.KeyBackspace)}, "2"}, // and goes on
		{[]keys{pressed(tea.KeyEscape)}, "2 0 1"},
		{[]keys{typed("/rank 2")}, "2"}, // by what the column is
		{[]keys{pressed(tea.KeyEscape)}, "2 0 1"},
	} {
		if press(s, c.keys...) {
			t.Errorf("%v end it", c.keys)
		}
		if got := shownRanks(s); got != c.want {
			t.Errorf("after %v: %q, want %q", c.keys, got, c.want)
		}
	}
	if !press(s, typed("q")) || !press(s, keys{{Code: 'c', Mod: tea.ModCtrl}}) {
		t.Error("neither q nor Ctrl-C ends it")
	}
}

// TestTopAsleep: the share is of the time between the answers of the proc, by its own clock,
// whenever they come.
func TestTopAsleep(t *testing.T) {
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	proc := func(clock, slept time.Duration) *Report {
		p := counted(0, 1, slept)
		p.Counts.Clock = clock
		return &Report{Jobs: []Job{{Job: *job(p)}}}
	}
	s := newScreen(nil, time.Second)
	s.Update(look{proc(10*time.Second, 5*time.Second), at})
	s.Update(look{proc(10800*time.Millisecond, 5800*time.Millisecond), at.Add(1200 * time.Millisecond)})
	if v := s.draw(); !strings.Contains(v, " 100 % ") {
		t.Errorf("asleep all the time:\n%s", v)
	}
}

// TestTopPlugins: plugins that were restarted and the server are on the second line, as in status.
func TestTopPlugins(t *testing.T) {
	j := job(counted(0, 0, 0))
	j.Sites[0].Transports = []links.Transport{{Name: "tcp", State: "healthy", Starts: 3}, {Name: "quic", State: "failed", Starts: 1}, {Name: "shm", State: "healthy", Starts: 1}}
	j.Sites[0].Server = &links.JobServer{Address: "10.0.0.1:7800", Embedded: true}
	s := newScreen(nil, time.Second)
	s.Update(tea.WindowSizeMsg{Width: 200, Height: 9})
	s.Update(look{&Report{Jobs: []Job{{Job: *j}}}, time.Now()})
	want := "alpha: plugin tcp started 3 times, plugin quic failed; server 10.0.0.1:7800, in the node of site alpha: alpha is connected"
	if line := strings.Split(s.draw(), "\n")[1]; line != want {
		t.Errorf("%q, want %q", line, want)
	}
}

// TestTopOfJobs: rows of several jobs say whose they are, and what is wrong comes first.
func TestTopOfJobs(t *testing.T) {
	a, b := job(counted(0, 0, 0), counted(1, 0, 0)), job(counted(0, 0, 0))
	a.ID, b.ID, b.Name = "aaaa", "bbbb", "rain"
	s := newScreen(nil, time.Second)
	s.Update(tea.WindowSizeMsg{Width: 100, Height: 8})
	s.Update(look{&Report{Jobs: []Job{{Job: *a}, {Job: *b, Deadlock: &Deadlock{For: time.Minute}}}}, time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)})
	want := `12:00:00  PROBABLE DEADLOCK for 1m0s of job rain, job heat: 3 running

JOB        RANK*  HOST   STATE    FOR  MSG/S  SENT/S  RECV/S  ASLEEP  DOES
heat aaaa      0  alpha  running                                      computing
heat aaaa      1  alpha  running                                      computing
rain bbbb      0  alpha  running                                      computing

s sort by the next column  r reverse  / filter  l procs or links  p pause  arrows scroll  q quit`
	if v := s.draw(); v != want {
		t.Errorf("got\n%s\nwant\n%s", v, want)
	}
}

// sent is a count of what went one way.
func sent(messages, bytes, data uint64) links.Count {
	c := links.Count{Messages: &messages, Bytes: &bytes}
	if data > 0 {
		c.Data = &data
	}
	return c
}

func pair(a, b int, there, back links.Count) links.Pair {
	return links.Pair{A: a, B: b, SiteA: "alpha", SiteB: "alpha", State: links.StateLinked, Transport: "tcp", Plane: "fd", AToB: there, BToA: back}
}

// twoLooks are two looks at a job, with what went between its procs meanwhile.
func twoLooks() (first, second *links.Job) {
	first, second = job(counted(0, 0, 0)), job(counted(0, 0, 0))
	first.Pairs = []links.Pair{pair(0, 1, sent(10, 1000, 700), sent(10, 1000, 0)), pair(0, 2, links.Count{}, sent(50, 50, 50)), pair(0, 10, sent(1, 1, 1), sent(1, 1, 1))}
	second.Pairs = []links.Pair{
		pair(0, 1, sent(30, 9000, 8700), sent(40, 5000, 0)), // back the data are not known
		pair(0, 2, sent(4, 4, 4), sent(40, 40, 40)),         // a link was made anew, and one end did not answer before
		pair(0, 10, sent(1, 1, 1), sent(1, 1, 1)),
		pair(1, 2, sent(2, 6, 6), links.Count{}), // new
		{A: 2, B: 3, State: links.StateUnused},
	}
	second.Pairs[3].Speed = &links.Speed{How: links.HowKernel, Measure: links.Measure{HalfTrip: 52500}}
	return first, second
}

// TestTopShowsLinks: the table of pairs has rates each way, and is sorted and filtered for itself.
func TestTopShowsLinks(t *testing.T) {
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	first, second := twoLooks()
	s := newScreen(nil, time.Second)
	s.Update(tea.WindowSizeMsg{Width: 100, Height: 9})
	press(s, typed("l"))
	s.Update(look{&Report{Jobs: []Job{{Job: *first}}}, at})
	s.Update(look{&Report{Jobs: []Job{{Job: *second}}}, at.Add(2 * time.Second)})
	want := `12:00:02  job heat: 1 running

 ENDS*  LINK    STATE   HALF TRIP  MSG/S >  MSG/S <    B/S >    B/S <  SITES
 0 - 1  tcp fd  linked                  10       15  4.00 kB  2.00 kB  alpha
 0 - 2  tcp fd  linked                            0               0 B  alpha
0 - 10  tcp fd  linked                   0        0      0 B      0 B  alpha
 1 - 2  tcp fd  linked    52.5 us        1               3 B           alpha

s sort by the next column  r reverse  / filter  l procs or links  p pause  arrows scroll  q quit`
	if v := s.draw(); v != want {
		t.Errorf("got\n%s\nwant\n%s", v, want)
	}
	order := func() (list string) {
		for _, line := range strings.Split(s.draw(), "\n")[3:] {
			if f := strings.Fields(line); len(f) > 4 && f[1] == "-" {
				list += f[0] + "-" + f[2] + " "
			}
		}
		return strings.TrimSpace(list)
	}
	for _, c := range []struct {
		keys []keys
		want string
	}{
		{[]keys{typed("r")}, "1-2 0-10 0-2 0-1"},
		{[]keys{typed("rsssss")}, "0-1 0-2 0-10 1-2"}, // messages back
		{[]keys{typed("r")}, "1-2 0-2 0-10 0-1"},
		{[]keys{typed("/4.00")}, "0-1"},
		{[]keys{pressed(tea.KeyEscape), typed("ll")}, "1-2 0-2 0-10 0-1"}, // to the procs, and back
	} {
		press(s, c.keys...)
		if got := order(); got != c.want {
			t.Errorf("after %v: %q, want %q", c.keys, got, c.want)
		}
	}
	third := *second
	third.Left = 7
	s.Update(look{&Report{Jobs: []Job{{Job: third}}}, at.Add(3 * time.Second)})
	fourth := third
	fourth.Pairs = append(fourth.Pairs, pair(3, 4, sent(9, 9, 9), sent(9, 9, 9)))
	s.Update(look{&Report{Jobs: []Job{{Job: fourth}}}, at.Add(4 * time.Second)})
	if v := s.draw(); !strings.Contains(v, "of 7 more pairs nothing is told") || !strings.Contains(strings.Join(strings.Fields(v), " "), "3 - 4 tcp fd linked alpha") {
		t.Errorf("a pair of which nothing was told before:\n%s", v)
	}
}

// TestRates: what -watch shows of pairs, from the second look on.
func TestRates(t *testing.T) {
	first, second := twoLooks()
	now := Job{Job: *second}
	now.rate(&Job{Job: *first}, 2*time.Second)
	var b bytes.Buffer
	write(&b, &Report{Jobs: []Job{now}})
	want := `
    ENDS    LINK    STATE   HALF TRIP  MESSAGES/S > / <  BYTES/S > / <
    0 - 1   tcp fd  linked  -          10 / 15           4.00 kB / 2.00 kB
    1 - 2   tcp fd  linked  52.5 us    1 / ?             3 B / ?
    0 - 2   tcp fd  linked  -          ? / 0             ? / 0 B
    0 - 10  tcp fd  linked  -          0 / 0             0 B / 0 B
`
	if got := b.String(); !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant in it\n%s", got, want)
	}
	if r := ratesOf(&now, nil, 0)[0]; r.AToB.Messages != nil || r.AToB.Bytes != nil {
		t.Errorf("rates of one look: %+v", r)
	}
}

// twoLooksAtMany are two looks at a job with more pairs than its nodes tell of, at two hosts of
// which the second does not answer the first time.
func twoLooksAtMany() (first, second *links.Job) {
	first, second = job(counted(0, 0, 0)), job(counted(0, 0, 0))
	linked := func(n int) []links.LinkCount {
		return []links.LinkCount{{State: links.StateLinked, Transport: "tcp", Plane: "fd", Pairs: n}, {State: links.StateLost, Transport: "quic", Plane: "ring", Pairs: 2}}
	}
	for _, j := range []*links.Job{first, second} {
		j.Sites = append(j.Sites, links.SiteState{Site: links.Site{Name: "beta", Client: 1, Own: true, Hosts: []string{"10.0.0.2"}}})
		j.Left = 5000
	}
	first.ByHost = []links.HostCounts{{From: 0, To: 1, Pairs: 62, Messages: 100, Data: 1000, Sent: 9000, Received: 500, RTT: 105 * time.Microsecond, Links: linked(60)}}
	second.ByHost = []links.HostCounts{
		{From: 1, To: 0, Pairs: 62, Messages: 70, Data: 700, Sent: 900, Received: 9000, RTT: 205 * time.Microsecond, Links: linked(60)},
		{From: 0, To: 1, Pairs: 62, Messages: 120, Data: 5000, Sent: 12000, Received: 900, RTT: 105 * time.Microsecond, Links: linked(60)},
		{From: 1, To: 1, Pairs: 4, Messages: 8, Data: 80, Links: []links.LinkCount{{State: links.StateLinked, Transport: "shm", Plane: "peer-shm", Pairs: 4}}},
	}
	return first, second
}

// TestRatesOfManyLinks: where the nodes do not tell of each pair there are links, rates and latency
// by pairs of hosts, in status, its JSON and top.
func TestRatesOfManyLinks(t *testing.T) {
	first, second := twoLooksAtMany()
	now := Job{Job: *second}
	now.rate(&Job{Job: *first}, 2*time.Second)
	var b bytes.Buffer
	write(&b, &Report{Jobs: []Job{now}})
	want := `
    ENDS        LINK                   STATE               HALF TRIP  MESSAGES/S > / <  BYTES/S > / <
    host 0 - 1  2 quic ring, 60 tcp fd  60 linked, 2 lost  52.5 us    10 / ?            2.00 kB / 200 B
    host 1 - 1  2 shm peer-shm          linked             -          4                 40 B
`
	if got := squeezed(b.String()); !strings.Contains(got, squeezed(want)) {
		t.Errorf("got\n%s\nwant in it\n%s", b.String(), want)
	}
	if h := now.Hosts; len(h) != 2 || *h[0].AToB.Messages != 10 || *h[0].AToB.Bytes != 2000 || h[0].BToA.Messages != nil || *h[1].AToB.Bytes != 40 {
		t.Errorf("%+v", h)
	}
	s := newScreen(nil, time.Second)
	s.Update(tea.WindowSizeMsg{Width: 120, Height: 9})
	press(s, typed("l"))
	s.Update(look{&Report{Jobs: []Job{{Job: *first}}}, time.Unix(0, 0)})
	s.Update(look{&Report{Jobs: []Job{{Job: *second}}}, time.Unix(2, 0)})
	for _, want := range []string{" host 0 - 1 2 quic ring, 60 tcp fd 60 linked, 2 lost 52.5 us 10 2.00 kB 200 B alpha - beta", " host 1 - 1 2 shm peer-shm linked 4 40 B beta"} {
		if got := squeezed(s.draw()); !strings.Contains(got, want) || strings.Contains(got, "nothing is told") {
			t.Errorf("no %q in\n%s", want, s.draw())
		}
	}
	if press(s, typed("sss")); !strings.Contains(s.draw(), "HALF TRIP*") {
		t.Errorf("not sorted by latency:\n%s", s.draw())
	}
}

// squeezed is a text with one blank between words.
func squeezed(s string) string { return strings.Join(strings.Fields(s), " ") }

// TestTopScrolls: rows beyond the screen can be reached, and the screen never shows less than it
// could.
func TestTopScrolls(t *testing.T) {
	var procs []links.Proc
	for i := range 30 {
		procs = append(procs, counted(i, 0, 0))
	}
	s := newScreen(nil, time.Second)
	s.Update(tea.WindowSizeMsg{Width: 80, Height: around + 5})
	s.Update(look{&Report{Jobs: []Job{{Job: *job(procs...)}}}, time.Now()})
	for _, c := range []struct {
		key  keys
		want string
	}{
		{pressed(tea.KeyDown), "1 2 3 4 5"}, {pressed(tea.KeyPgDown), "6 7 8 9 10"}, {pressed(tea.KeyUp), "5 6 7 8 9"},
		{pressed(tea.KeyEnd), "25 26 27 28 29"}, {pressed(tea.KeyDown), "25 26 27 28 29"}, {pressed(tea.KeyHome), "0 1 2 3 4"},
		{pressed(tea.KeyPgUp), "0 1 2 3 4"},
	} {
		press(s, c.key)
		if got := shownRanks(s); got != c.want {
			t.Errorf("after %v: %s, want %s", c.key, got, c.want)
		}
	}
	press(s, pressed(tea.KeyEnd))
	s.Update(look{&Report{Jobs: []Job{{Job: *job(procs[:3]...)}}}, time.Now()})
	if got := shownRanks(s); got != "0 1 2" {
		t.Errorf("after most have gone: %s", got)
	}
	s.Update(look{&Report{}, time.Now()})
	if v := s.draw(); !strings.Contains(v, "no job any more") {
		t.Errorf("after the end:\n%s", v)
	}
}

// TestTopPauses: a paused screen asks nobody.
func TestTopPauses(t *testing.T) {
	looks := 0
	s := newScreen(func() *Report { looks++; return &Report{} }, time.Nanosecond)
	press(s, typed("p"))
	_, cmd := s.Update(dueMsg{})
	if _, due := cmd().(dueMsg); !due || looks != 0 {
		t.Errorf("%d looks", looks)
	}
	press(s, typed("p"))
	if _, cmd = s.Update(dueMsg{}); cmd() == nil || looks != 1 {
		t.Errorf("%d looks", looks)
	}
}

func TestTopWantsATerminal(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	var errs strings.Builder
	if got := TopCommand(null, null).Execute(nil, &errs, &errs); got != cmdline.StatusUsage || !strings.Contains(errs.String(), "for terminals") {
		t.Errorf("status %d: %s", got, errs.String())
	}
	if TopCommand(null, null).Execute([]string{"-json"}, io.Discard, io.Discard) != cmdline.StatusUsage {
		t.Error("-json is taken")
	}
}
