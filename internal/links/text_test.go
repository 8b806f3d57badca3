package links

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/core/route"
)

// report has one pair of every kind.
func report() *Report {
	at := time.Unix(1000, 0)
	star := Route{Site: "*", Prefer: []string{"shm", "tcp"}, Direct: true}
	tried := []Candidate{
		{Transport: "shm", Reach: "machine", Verdict: Failed, Reason: "no memory", Address: "m!/run/shm.sock", Tries: 2, At: at},
		{Transport: "tcp", Reach: "network", Verdict: Chosen, Reason: "the first of the route's prefer that works", Address: "127.0.0.3:1"},
	}
	j := jobOf(
		Pair{A: 0, B: 1, State: StateLinked, Transport: "shm", Plane: "peer-shm", PlaneReason: "memory that both have", Since: at, Why: "the first of the route's prefer",
			AToB: Count{Messages: number(1200), Bytes: number(1234567)}, BToA: Count{Messages: number(3)},
			Speed: &Speed{How: HowProbe, Measure: Measure{HalfTrip: 450 * time.Nanosecond, Rate: 9.1e9}},
			Views: []View{{Local: 0, Peer: 1, SameMachine: true, Route: star, Dialled: true}}},
		Pair{A: 0, B: 2, State: StateLinked, Transport: "tcp", Plane: "fd", Since: at, Why: "tried first and failed: shm",
			Speed: &Speed{How: HowKernel, Measure: Measure{HalfTrip: 15 * time.Microsecond}},
			Views: []View{{Local: 0, Peer: 2, SameMachine: true, Route: star, Dialled: true, Candidates: tried}}},
		Pair{A: 0, B: 3, State: StateLinked, Transport: "tcp", Plane: "fd", Since: at, Why: "tried first and failed: shm", Resumes: 2,
			Speed: &Speed{How: HowProbe, Problem: "not measured: no answer in time"},
			Views: []View{{Local: 0, Peer: 3, SameMachine: true, Route: star, Dialled: true, Candidates: tried}}},
		Pair{A: 1, B: 2, State: StateAgents, Since: at, Why: "the route has direct = false",
			Views: []View{{Local: 1, Peer: 2, Route: Route{Site: "beta", Prefer: []string{"tcp"}}, Candidates: []Candidate{{Transport: "tcp", Verdict: Excluded, Rule: route.DirectOff, Reason: "the route has direct = false"}}}}},
		Pair{A: 1, B: 3, State: StateOpening, Why: "the transports are being tried", Views: []View{{Local: 1, Peer: 3, Route: star}}},
		Pair{A: 2, B: 3, State: StateLinked, Transport: "quic", Plane: "stream", Since: at, Why: "the first of the route's prefer",
			Views: []View{{Local: 2, Peer: 3, Route: star, Dialled: true, Candidates: []Candidate{{Transport: "quic", Reach: "network", Verdict: Chosen}}}}},
	)
	j.Unused, j.Left = 12, 1
	j.Sites[0].Hosts, j.Sites[0].State = []string{"127.0.0.2"}, NodeRunning
	j.Sites[0].Agents = []Host{{Address: "127.0.0.2", Wait: Waiting{Setting: "auto", Budget: 200 * time.Microsecond}}}
	j.Sites[0].Ranks[0].Agent = Bytes{Sent: number(2048), Received: number(0)}
	j.Sites[0].Ranks[1].Silent = "it does not answer"
	j.Sites[0].Transports = []Transport{
		{Name: "tcp", State: "degraded", PID: 300, Links: 4, Starts: 2, Protocol: 1, Lacks: []string{"health", "protocols"}, Problem: "small buffers",
			Usage: &Resources{Resident: 21e6, Own: 9.5e6, CPU: 1250 * time.Millisecond, Descriptors: 12, Threads: 8}},
		{Name: "shm", State: "backoff", Error: "exit status 1", Failures: 3, NextTry: time.Unix(1076, 0).UTC()},
	}
	j.Sites[1].Hosts, j.Sites[1].Problem = []string{"127.0.0.3"}, "the node does not answer"
	j.Sites[1].Ranks = nil
	j.Sites = append(j.Sites,
		SiteState{Site: Site{Name: "gamma", Client: 2, Own: true, First: 4, Procs: 1, Hosts: []string{"192.0.2.1"}}},
		SiteState{Site: Site{Client: 3, First: 5, Procs: 2, Hosts: []string{"192.0.2.2"}}})
	j.Channels = []Channel{
		{From: 0, To: 1, Address: "127.0.0.3", Transport: "tcp", Plane: "fd", RTT: 40 * time.Microsecond, State: StateLinked, Bytes: Bytes{Sent: number(99), Received: number(1)}},
		{From: 0, To: 2, Address: "192.0.2.1", Transport: "quic", Plane: "ring", PlaneReason: "the plugin has the connection", State: StateLost, Resumable: true, Resumes: 2, Lost: "connection reset by peer"},
		{From: 0, To: 3, Address: "192.0.2.2", State: StateEnded, Ended: true},
	}
	Advise(j)
	return &Report{Schema: Schema, Jobs: []Job{*j, {Name: "new", Sites: []SiteState{{Site: Site{Name: "alpha", Own: true}, Here: true, PID: 400, State: NodeStarting}}}}}
}

// TestText compares with what was read and found good. IMPI_REWRITE=1 writes it
// anew; then read the difference.
func TestText(t *testing.T) {
	for name, style := range map[string]Style{"table.txt": {}, "explain.txt": {Explain: true}} {
		style.Now = time.Unix(1075, 0)
		var b strings.Builder
		WriteText(&b, report(), style)
		path := filepath.Join("testdata", name)
		if os.Getenv("IMPI_REWRITE") != "" {
			if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if b.String() != string(want) {
			t.Errorf("%s:\n%s", name, b.String())
		}
	}
}

func TestNumbersForPeople(t *testing.T) {
	for d, want := range map[time.Duration]string{
		110: "0.11 us", 9990: "9.99 us", 12340: "12.3 us", 123400: "123 us", 1234567: "1.2 ms", 2 * time.Second: "2.0 s",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
	now := time.Unix(10000, 0)
	for back, want := range map[time.Duration]string{0: "0 s", 59 * time.Second: "59 s", time.Minute: "1 min", 3 * time.Hour: "3 h"} {
		if got := age(now.Add(-back), now); got != want {
			t.Errorf("%v ago is %q, want %q", back, got, want)
		}
	}
	if got := age(time.Time{}, now); got != "" {
		t.Errorf("no moment is %q ago", got)
	}
}

func TestWaitingForPeople(t *testing.T) {
	for want, w := range map[string]Waiting{
		"wait auto: poll 200us, then sleep; now asleep":                               {Setting: "auto", Budget: 200 * time.Microsecond, State: "asleep"},
		"wait 0s: sleep at once; now computing":                                       {Setting: "0s", State: "computing"},
		"wait auto: poll 1ms, then sleep; now polling, oversubscribed: does not poll": {Setting: "auto", Budget: time.Millisecond, State: "polling", Oversubscribed: true},
		"wait auto": {Setting: "auto"},
		"wait auto; looks after messages every 1ms while computing":                           {Setting: "auto", Progress: time.Millisecond},
		"wait 0s: sleep at once; looks after messages every 50us while computing; now asleep": {Setting: "0s", State: "asleep", Progress: 50 * time.Microsecond},
	} {
		if got := wait(w); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestWaitsOfTheLost: of procs that are lost it is not known how they wait, and a link that has
// ended is as old as when it was made.
func TestWaitsOfTheLost(t *testing.T) {
	p := SiteState{Ranks: []Proc{
		{Rank: 0, State: ProcRunning, Wait: Waiting{Setting: "auto", State: "computing"}},
		{Rank: 1, State: ProcLost},
		{Rank: 2, State: ProcInit},
	}}
	if got, want := p.waits(), "wait auto: sleep at once; now 1 computing, 1 lost, 1 in MPI_Init"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.Ranks[0].Wait.Progress = 2 * time.Millisecond
	if got, want := p.waits(), "wait auto: sleep at once; looks after messages every 2ms while computing; now 1 computing, 1 lost, 1 in MPI_Init"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.Ranks = p.Ranks[1:2]
	if got := p.waits(); strings.Contains(got, "sleep") || !strings.Contains(got, "1 lost") {
		t.Errorf("a site that is lost: %q", got)
	}
	now := time.Unix(10000, 0)
	for state, want := range map[State]string{StateLinked: "linked 8 s", StateEnded: "ended"} {
		if got := (&Pair{State: state, Since: now.Add(-8 * time.Second)}).state(now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestReportAsJSON: no field hides another, and none is lost.
func TestReportAsJSON(t *testing.T) {
	want := report()
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Report
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(got)
	if err != nil || string(again) != string(b) {
		t.Errorf("%v\n%s\n%s", err, again, b)
	}
	if s := got.Jobs[0].Sites[0]; s.Procs != 2 || len(s.Ranks) != 2 || s.Hosts[0] != "127.0.0.2" {
		t.Errorf("%+v", s)
	}
	if p := got.Jobs[0].Pairs[0]; p.Speed.Rate != 9.1e9 || *p.AToB.Bytes != 1234567 || p.BToA.Bytes != nil || p.Views[0].Route.Prefer[1] != "tcp" {
		t.Errorf("%+v", p)
	}
}

// TestWhoseEnd: of a pair within a site whose ends report different things, it is said whose end
// each is.
func TestWhoseEnd(t *testing.T) {
	one := View{Local: 0, Peer: 1, Route: Route{Prefer: []string{"shm"}}, Candidates: []Candidate{{Transport: "shm", Verdict: Chosen}}}
	other := View{Local: 1, Peer: 0, Route: one.Route}
	j := &Job{Sites: []SiteState{{Site: Site{Name: "alpha", Procs: 2}}}, Pairs: []Pair{{A: 0, B: 1, Views: []View{one, other}}}}
	for _, want := range []int{1, 0} {
		var b bytes.Buffer
		if !j.Explain(&b, 0, 1) || strings.Count(b.String(), "site alpha (end of the lower rank), the") != want || strings.Count(b.String(), "site alpha (end of the higher rank), the") != want {
			t.Errorf("want %d: %s", want, b.String())
		}
		if n := strings.Count(b.String(), "site alpha"); n != 1+want {
			t.Errorf("%d ends: %s", n, b.String())
		}
		j.Pairs[0].Views[1].Candidates = one.Candidates // both report the same
	}
}

// TestCollectivesBetweenSites are shown where there are several sites.
func TestCollectivesBetweenSites(t *testing.T) {
	direct, tree := &Collectives{Direct: 32, DirectLong: 1 << 20, Why: "one reason"}, &Collectives{Why: "another"}
	for want, sites := range map[string][]SiteState{
		"all at once up to 32 sites, Allreduce of 1.05 MB and more part by part; one reason": {{Site: Site{Collectives: direct}}, {Site: Site{Collectives: direct}}},
		"up and down a tree; another": {{Site: Site{Collectives: tree}}, {}, {Site: Site{Collectives: tree}}},
		"":                            {{Site: Site{Collectives: direct}}, {}},
	} {
		var b bytes.Buffer
		writeCollectives(&b, &Job{Sites: sites})
		if got := b.String(); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
