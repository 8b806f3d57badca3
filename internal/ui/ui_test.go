package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/status"
)

var anyPort = netip.MustParseAddrPort("127.0.0.1:0")

func serve(t *testing.T, look AskFunc) *Server {
	t.Helper()
	s, err := Serve(anyPort, look, func(ctx context.Context, _ string) *links.Ending { <-ctx.Done(); return nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// get asks for a path with headers, of which Host is the host, and gives the answer's status and
// body.
func get(t *testing.T, s *Server, path string, header http.Header) (int, string, *http.Response) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Address().String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header, r.Host = header.Clone(), header.Get("Host")
	c := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	a, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(b), a
}

// TestToken: without the token nothing is told, nor to a page of another name that leads here.
func TestToken(t *testing.T) {
	var looks atomic.Int32
	s := serve(t, func(context.Context) []status.Job { looks.Add(1); return small(0) })
	cookie := http.Header{"Cookie": {s.cookie() + "=" + s.token}}
	for name, c := range map[string]struct {
		path   string
		header http.Header
		want   int
	}{
		"no token":        {"/api/job", http.Header{}, http.StatusUnauthorized},
		"page, no token":  {"/", http.Header{}, http.StatusUnauthorized},
		"script":          {"/page.js", http.Header{}, http.StatusUnauthorized},
		"wrong token":     {"/api/job?token=" + s.token[1:], http.Header{}, http.StatusUnauthorized},
		"wrong cookie":    {"/api/job", http.Header{"Cookie": {s.cookie() + "=x"}}, http.StatusUnauthorized},
		"other's cookie":  {"/api/job", http.Header{"Cookie": {"impi_ui_1=" + s.token}}, http.StatusUnauthorized},
		"another name":    {"/api/job?token=" + s.token, http.Header{"Host": {"evil.example"}}, http.StatusMisdirectedRequest},
		"another address": {"/api/job", http.Header{"Host": {"192.0.2.1:80"}, "Cookie": cookie["Cookie"]}, http.StatusMisdirectedRequest},
		"no such page":    {"/api/none", cookie, http.StatusNotFound},
		"explain, no job": {"/api/explain?a=0&b=x", cookie, http.StatusBadRequest},
	} {
		if got, body, _ := get(t, s, c.path, c.header); got != c.want || strings.Contains(body, "heat2d") {
			t.Errorf("%s: status %d, want %d: %s", name, got, c.want, body)
		}
	}
	if looks.Load() > 0 {
		t.Errorf("the nodes were asked %d times for strangers", looks.Load())
	}
	got, _, a := get(t, s, "/?token="+s.token, http.Header{})
	if set := a.Cookies(); got != http.StatusSeeOther || a.Header.Get("Location") != "/" || len(set) != 1 || set[0].Value != s.token || !set[0].HttpOnly || set[0].SameSite != http.SameSiteStrictMode {
		t.Errorf("status %d, %v", got, a.Header)
	}
	for _, h := range []http.Header{cookie, {"Cookie": cookie["Cookie"], "Host": {"localhost:1234"}}, {"Cookie": cookie["Cookie"], "Host": {"[::1]"}}} {
		if got, body, _ := get(t, s, "/api/job", h); got != http.StatusOK || !strings.Contains(body, "heat2d") {
			t.Errorf("%v: status %d: %s", h, got, body)
		}
	}
	if other := serve(t, nil); other.token == s.token || len(s.token) < 20 {
		t.Errorf("tokens %q and %q", s.token, other.token)
	}
}

// TestListen: the page is at a loopback address only.
func TestListen(t *testing.T) {
	for _, at := range []string{"0.0.0.0:0", "[::]:0", "10.77.0.1:9480"} {
		if s, err := Serve(netip.MustParseAddrPort(at), nil, nil); !errors.Is(err, ErrListen) || !strings.Contains(err.Error(), "write 127.0.0.1:9480 and forward the port, as by ssh -L 9480:127.0.0.1:9480 HOST") {
			t.Errorf("%s: %v, %v", at, s, err)
		}
	}
	s := serve(t, nil)
	if _, err := Serve(s.Address(), nil, nil); err == nil || errors.Is(err, ErrListen) {
		t.Errorf("the same port again: %v", err)
	}
}

// TestLooks: many who ask at once share a look.
func TestLooks(t *testing.T) {
	var looks, at atomic.Int32
	s := serve(t, func(context.Context) []status.Job {
		if at.Add(1) > 1 {
			t.Error("two looks at a time")
		}
		defer at.Add(-1)
		looks.Add(1)
		return small(0)
	})
	header := http.Header{"Cookie": {s.cookie() + "=" + s.token}}
	begun := time.Now()
	done := make(chan bool)
	const asking = 20
	for range asking {
		go func() { get(t, s, "/api/job", header); done <- true }()
	}
	for range asking {
		<-done
	}
	if most := 2 + int32(time.Since(begun)/fresh); looks.Load() > most {
		t.Errorf("%d looks for %d who ask", looks.Load(), asking)
	}
}

// count makes a Count.
func count(messages, bytes uint64) links.Count {
	return links.Count{Messages: &messages, Bytes: &bytes}
}

// hostile is a name that is markup if it is not written as text.
const hostile = `<img src=x onerror="window.taken = true">&amp;`

// small is a job of two sites with two procs each, after some looks.
func small(looks int) []status.Job {
	now := time.Date(2026, 11, 27, 15, 0, 0, 0, time.UTC).Add(time.Duration(looks) * time.Second)
	proc := func(rank, host int) links.Proc {
		sent := uint64(1000 * (rank + 1) * (looks + 1))
		return links.Proc{Rank: rank, PID: 100 + rank, Host: host, State: links.ProcRunning, Wait: links.Waiting{State: "computing"}, Counts: &links.Counts{Messages: uint64(looks), Sent: sent, Received: sent}}
	}
	waiting := proc(3, 1)
	waiting.Blocked = &links.Blocked{Time: 40 * time.Second, Calls: []links.Call{{Name: "MPI_Recv"}}, Partners: []links.Partner{{What: "recv", Peer: 2, Tag: 7, Comm: hostile}}}
	j := links.Job{
		Name: "heat2d", ID: "abc123",
		Sites: []links.SiteState{
			{
				Site: links.Site{Name: "alpha", Own: true, Procs: 2, Hosts: []string{"127.0.0.2"}}, Here: true, State: links.NodeRunning,
				Server:     &links.JobServer{Address: "127.0.0.1:7800"},
				Ranks:      []links.Proc{proc(0, 0), proc(1, 0)},
				Transports: []links.Transport{{Name: "tcp", State: "healthy", Links: 3}, {Name: "quic", State: "failed", Error: "exit status 1"}},
			},
			{Site: links.Site{Name: hostile, Client: 1, Own: true, First: 2, Procs: 2, Hosts: []string{"127.0.0.3"}}, State: links.NodeRunning, Server: &links.JobServer{Address: "127.0.0.1:7800", Lost: now.Add(-time.Minute), Why: "it was killed"}, Ranks: []links.Proc{proc(2, 1), waiting}},
		},
		Pairs: []links.Pair{
			{A: 0, B: 1, State: links.StateLinked, Transport: "shm", AToB: count(5, 5000), BToA: count(1, 10), Why: "the first of the route's prefer", Views: []links.View{{Local: 0, Peer: 1}}},
			{A: 0, B: 2, State: links.StateAgents, AToB: count(7, 70), BToA: count(0, 0), Why: "direct = false", Views: []links.View{{Local: 0, Peer: 2, PeerHost: 1}}, Speed: &links.Speed{Measure: links.Measure{HalfTrip: 12 * time.Microsecond}}},
		},
		Channels: []links.Channel{
			{From: 0, To: 1, State: links.StateLinked, Transport: "tcp", Plane: "fd", Resumable: true, Pure: true, Bytes: links.Bytes{Sent: number(900), Received: number(0)}, UnderWay: number(300)},
			{From: 1, To: 0, State: links.StateLinked, Transport: "tcp", Plane: "fd", Resumable: true, Pure: true, Bytes: links.Bytes{Sent: number(0), Received: number(600)}, UnderWay: number(0)},
		},
		Left: 3,
		Log: []links.LogLine{
			{At: now.Add(-time.Minute), Level: "info", From: "impi-node", Text: "the job runs"},
			{At: now.Add(-30 * time.Second), Level: "warn", From: "impi-node", Text: "a direct link is lost: " + hostile, Host: "127.0.0.2", Site: "alpha"},
			{At: now.Add(-25 * time.Second), Level: "warn", From: "impi-node", Text: "a direct link is lost: " + hostile, Host: "127.0.0.2", Site: "alpha"},
			{At: now.Add(-24 * time.Second), Level: "warn", From: "impi-node", Text: "the job file differs, which needs a restart: env", Host: "127.0.0.2", Site: "alpha"},
			{At: now.Add(-20 * time.Second), Level: "info", From: "impi-node", Text: "a direct link is resumed: from=0 to=1", Site: hostile},
		},
	}
	return []status.Job{{Job: j}}
}

// large is a job of 4 sites with 8 hosts of 32 procs each, all of which have sent to all hosts but
// the last one, which did not answer.
func large(int) []status.Job {
	const sites, hosts, procs = 4, 8, 32
	j := links.Job{Name: "large", ID: "def456"}
	for s := range sites {
		p := links.SiteState{Site: links.Site{Name: fmt.Sprintf("site%d", s), Client: s, Own: true, First: s * hosts * procs, Procs: hosts * procs}, State: links.NodeRunning}
		for h := range hosts {
			address := fmt.Sprintf("10.%d.0.%d", s, h+1)
			p.Hosts = append(p.Hosts, address)
			p.Nodes = append(p.Nodes, links.HostNode{Host: address, Number: h})
			for i := range procs {
				rank := (s*hosts+h)*procs + i
				x := links.Proc{Rank: rank, PID: 1000 + rank, Host: s*hosts + h, State: links.ProcRunning, Counts: &links.Counts{}}
				if rank%3 == 0 {
					x.Blocked = &links.Blocked{Time: time.Minute, Calls: []links.Call{{Name: "MPI_Barrier"}}}
				}
				p.Ranks = append(p.Ranks, x)
			}
		}
		j.Sites = append(j.Sites, p)
	}
	const last = sites*hosts - 1
	j.Sites[sites-1].Nodes[hosts-1].Problem = "it does not answer"
	j.Sites[sites-1].Problem = "host 10.3.0.8: it does not answer"
	for i := range j.Sites {
		j.Sites[i].Server = &links.JobServer{Address: "10.0.0.1:7800"}
	}
	j.Sites[2].Server.DisconnectedSince = time.Now().Add(-time.Minute)
	for a := range last {
		for b := range last + 1 {
			kinds := []links.LinkCount{{State: links.StateLinked, Transport: "tcp", Pairs: procs}}
			if a/hosts == 0 && b/hosts == 1 && b%hosts == 2 { // a machine of site1 that site0 does not reach
				kinds = []links.LinkCount{{State: links.StateLinked, Transport: "tcp", Pairs: procs - 2}, {State: links.StateLost, Transport: "tcp", Pairs: 2, Resumes: 1}}
			}
			if a/hosts == b/hosts {
				kinds[0].Transport = "unix"
			}
			j.ByHost = append(j.ByHost, links.HostCounts{From: a, To: b, Links: kinds, Pairs: procs, Messages: uint64(a + b), Data: uint64(1000 * (a + 1) * (b + 1)), Sent: 5, Received: 77, RTT: time.Duration(2*b) * time.Microsecond})
		}
	}
	j.Pairs = []links.Pair{{A: 0, B: 32, State: links.StateLinked, Transport: "tcp", Plane: "fd", Why: "the first of the route's prefer", Views: []links.View{{Local: 32, Peer: 0, LocalHost: 1, Dialled: true}}}}
	j.Channels = []links.Channel{{From: 1, To: 0, State: links.StateLinked, Transport: "tcp", Plane: "fd", PlaneReason: "it is a socket", Lost: "a cable", Resumable: true, Resumes: 2}}
	return []status.Job{{Job: j}}
}

// TestModel: of a small job the matrix is by rank, of a large one by host, and what a host did not
// say is taken from those that received it.
func TestModel(t *testing.T) {
	m := modelOf(small(0), "1", time.Time{}).Jobs[0]
	if m.Matrix.By != "rank" || m.Matrix.Size != 4 || len(m.Matrix.Cells) != 4 || m.Matrix.LeftOut != 3 {
		t.Errorf("%+v", m.Matrix)
	}
	if c := m.Matrix.Cells[0]; c != (cell{From: 0, To: 1, Messages: 5, Bytes: 5000, Transport: "shm", State: "linked"}) {
		t.Errorf("%+v", c)
	}
	if c := m.Matrix.Cells[2]; c.HalfTrip != 12 || c.Messages != 7 {
		t.Errorf("%+v", c)
	}
	if r := m.Ranks[3]; r.State != "blocked" || r.Blocked != 40 || !strings.Contains(r.Does, "MPI_Recv") || r.Site != 1 || r.Sent != 4000 {
		t.Errorf("%+v", r)
	}
	events := 0
	for _, l := range m.Log {
		if l.Event {
			events++
		}
	}
	if events != 3 || len(m.Log) != 5 {
		t.Errorf("%d events in %+v", events, m.Log)
	}
	m = modelOf(large(0), "1", time.Time{}).Jobs[0]
	if m.Matrix.By != "host" || m.Matrix.Size != 32 || len(m.Matrix.Cells) != 32*32-1 || len(m.Ranks) != 1024 || len(m.Problems) != 1 {
		t.Errorf("%s, %d, %d cells, %d ranks, %q", m.Matrix.By, m.Matrix.Size, len(m.Matrix.Cells), len(m.Ranks), m.Problems)
	}
	for _, c := range m.Matrix.Cells {
		want := uint64(1000 * (c.From + 1) * (c.To + 1))
		if c.From == 31 {
			want = 77
		}
		if half := float64(c.To); c.From == 31 {
			if c.HalfTrip != 31 { // of the ends that say it
				t.Errorf("%+v", c)
			}
		} else if c.HalfTrip != half {
			t.Errorf("%+v", c)
		}
		pairs := 32
		if c.From == c.To {
			pairs = 16
		}
		if c.Bytes != want || c.Pairs != pairs {
			t.Errorf("%+v, want %d bytes", c, want)
		}
	}
	b, err := json.Marshal(modelOf(large(0), "1", time.Time{}))
	if err != nil || len(b) > 1<<20 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// withLosses are jobs of two sites that go on without the second one.
func withLosses(jobs []status.Job, now time.Time) []status.Job {
	loss := &links.Loss{First: 2, Last: 3, Host: true, At: now.Add(-5 * time.Second), Why: "its channel ended"}
	b := &jobs[0].Sites[1]
	b.Lost = loss
	for i := range b.Ranks {
		b.Ranks[i].State, b.Ranks[i].Lost, b.Ranks[i].Blocked = links.ProcLost, loss, nil
	}
	return jobs
}

// TestModelOfLosses: a lost site and procs are shown as such, and the site is a problem of the job.
func TestModelOfLosses(t *testing.T) {
	now := time.Now()
	jobs := withLosses(small(0), now)
	loss := jobs[0].Sites[1].Lost
	m := modelOf(jobs, "1", now).Jobs[0]
	want := "lost since " + loss.At.Format(time.TimeOnly) + ", 5 s ago: its channel ended"
	if r := m.Ranks[3]; r.State != "lost" || !strings.HasPrefix(r.Does, "lost since ") {
		t.Errorf("%+v", r)
	}
	if s := m.Sites[1]; s.Problem != want || s.Hosts[0].Problem != want || !slices.Contains(m.Problems, "site "+s.Name+" is "+want) {
		t.Errorf("%+v, %q", s, m.Problems)
	}
}

// TestModelOfManyPairs: of a job of whose pairs the nodes do not tell all the matrix is by host, if
// it has several.
func TestModelOfManyPairs(t *testing.T) {
	jobs := small(0)
	jobs[0].ByHost = []links.HostCounts{{From: 0, To: 1, Pairs: 9000, Links: []links.LinkCount{{State: links.StateLinked, Transport: "tcp", Pairs: 9000}}}}
	if m := modelOf(jobs, "1", time.Time{}).Jobs[0].Matrix; m.By != "host" || m.LeftOut != 0 {
		t.Errorf("%+v", m)
	}
	jobs[0].Sites[0].Hosts, jobs[0].Sites[1].Hosts = jobs[0].Sites[0].Hosts[:1], nil
	if m := modelOf(jobs, "1", time.Time{}).Jobs[0].Matrix; m.By != "rank" {
		t.Errorf("of one host: %+v", m)
	}
}

// TestBounded: of a matrix with too many cells those with the fewest bytes are left out.
func TestBounded(t *testing.T) {
	m := matrix{Cells: make([]cell, mostCells+10)}
	for i := range m.Cells {
		m.Cells[i].Bytes = uint64(i)
	}
	if m = m.bounded(); len(m.Cells) != mostCells || m.LeftOut != 10 || m.Cells[mostCells-1].Bytes != 10 {
		t.Errorf("%d cells, %d left out", len(m.Cells), m.LeftOut)
	}
}
