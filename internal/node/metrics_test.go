package node

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/loopback"
	"github.com/openimpi/impi/internal/skips"
)

// TestPrometheus has a real Prometheus scrape both nodes of a job, and asks it.
func TestPrometheus(t *testing.T) {
	program := skips.Program(t, "prometheus")
	job := route(testJob("linked", 2, 2), config.Route{Prefer: []string{"unix", "tcp"}, Direct: true})
	for i := range job.Sites {
		job.Sites[i].Metrics.Listen = netip.MustParseAddrPort("127.0.0.1:0")
	}
	all := start(t, job)
	var targets []string
	for _, s := range all {
		<-s.n.ready
		for i := range s.n.procs.All() {
			s.out.Line(t, prefixOf(s.n, i)+"sum ")
		}
		targets = append(targets, `"`+s.n.metrics.Address().String()+`"`)
	}
	ask := prometheus(t, program, targets)
	for query, want := range map[string]string{
		`sum(impi_procs{state="running"})`:                                 "4",
		`sum by (site) (impi_job_phase{phase="running"}) == 1`:             "1 1",
		`count(impi_node_info)`:                                            "2",
		`sum(impi_pairs{state="linked",transport="unix",data_plane="fd"})`: "12", // each end counts
		`count(impi_proc_sent_messages_total >= 3)`:                        "4",
		`sum(impi_plugin_healthy)`:                                         "4",
		`sum(impi_proc_unexpected_messages)`:                               "0",
		`count(go_goroutines{instance=~"127.0.0.1:.*"} > 0)`:               "2",
		`count(impi_proc_sent_bytes_total > 0)`:                            "4",
		`sum(impi_pair_resumes_total) + sum(impi_channel_resumes_total)`:   "0",
		`count by (mpi_job) (impi_proc_silent == 0)`:                       "4",
		// of their channels: nobody estimates the latency of Unix sockets
		`count(impi_link_latency_seconds_count >= 1)`:                                                                          "2",
		`count(impi_link_retransmits_total{transport="tcp"} >= 0)`:                                                             "2",
		`count(histogram_quantile(0.5, sum by (site, peer_site, le) (impi_link_latency_seconds_bucket{transport="tcp"})) > 0)`: "2",
	} {
		ask(query, want)
	}
	for query := range dashboard(t) {
		ask("0 * (count("+query+") or vector(0))", "0") // it is an error if Prometheus does not understand it
	}
}

// dashboard has the queries of docs/grafana.json for all jobs.
func dashboard(t *testing.T) map[string]bool {
	t.Helper()
	b, err := os.ReadFile("../../docs/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	queries := make(map[string]bool)
	var d struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	for _, p := range d.Panels {
		for _, x := range p.Targets {
			queries[strings.NewReplacer("$mpi_job", ".*", "$__rate_interval", "2s").Replace(x.Expr)] = true
		}
	}
	return queries
}

// prometheus starts a Prometheus that scrapes the targets. The result asks it until the values of a
// query are those wanted.
func prometheus(t *testing.T, program string, targets []string) (ask func(query, want string)) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("scrape_configs:\n  - job_name: impi\n    scrape_interval: 200ms\n    scrape_timeout: 200ms\n    static_configs:\n      - targets: [%s]\n", strings.Join(targets, ", "))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	at := loopback.Unused(t)
	cmd := exec.Command(program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+at, "--log.level=error")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return func(query, want string) {
		t.Helper()
		for {
			got, err := valuesOf(ctx, t, at, query)
			switch {
			case got == want:
				return
			case ctx.Err() != nil:
				t.Fatalf("%s is %q, want %q: %v", query, got, want, err)
			}
		}
	}
}

// valuesOf returns the values of a query, without their labels.
func valuesOf(ctx context.Context, t *testing.T, at, query string) (string, error) {
	t.Helper()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at+"/api/v1/query?query="+url.QueryEscape(query), nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	var answer struct {
		Error string
		Data  struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
		return "", err
	}
	if answer.Error != "" {
		t.Fatalf("%s: %s", query, answer.Error)
	}
	var values []string
	for _, x := range answer.Data.Result {
		values = append(values, fmt.Sprint(x.Value[1]))
	}
	return strings.Join(values, " "), nil
}

// TestAccounts: what procs count of their calls, if the site wants that, and nothing otherwise.
func TestAccounts(t *testing.T) {
	job := route(testJob("linked", 2, 2), config.Route{Prefer: []string{"unix", "tcp"}, Direct: true})
	job.Sites[0].Metrics.Calls = true
	all := start(t, job)
	for _, s := range all {
		<-s.n.ready
		for i := range s.n.procs.All() {
			s.out.Line(t, prefixOf(s.n, i)+"sum ")
		}
	}
	n := all[0].n.control.Describe(t.Context(), links.Request{Account: true})
	for _, p := range n.Procs {
		a := p.Account
		if a == nil {
			t.Fatalf("rank %d has counted nothing: %s", p.Rank, p.Silent)
		}
		called := make(map[string]uint64)
		for _, c := range a.Calls {
			if called[c.Name] = c.Calls; c.Time <= 0 || c.Time > a.Time || c.Class == "" {
				t.Errorf("rank %d: %+v in %v", p.Rank, c, a.Time)
			}
		}
		var sent, bytes uint64
		peers := make(map[int]bool)
		for _, s := range a.Sent {
			sent, bytes, peers[s.Peer] = sent+s.Messages, bytes+s.Bytes, true
		}
		if called["MPI_Isend"] != 3 || called["MPI_Recv"] != 3 || called["MPI_Wait"] != 3 || len(peers) != 3 || peers[p.Rank] || sent < 3 || bytes < 3*8 {
			t.Errorf("rank %d: %+v", p.Rank, a)
		}
	}
	for _, p := range all[1].n.control.Describe(t.Context(), links.Request{Account: true}).Procs {
		if p.Account != nil {
			t.Errorf("rank %d counts without being told to: %+v", p.Rank, p.Account)
		}
	}
	if p := all[0].n.control.Describe(t.Context(), links.Request{}).Procs[0]; p.Account != nil {
		t.Error("an account that nobody has asked for")
	}
}

// TestEstimatesOfPlugins: of links and channels whose bytes pass through a plugin, it is the plugin
// that knows their latency and what had to be sent again.
func TestEstimatesOfPlugins(t *testing.T) {
	for _, transport := range []string{"tcp", "quic"} {
		t.Run(transport, func(t *testing.T) {
			job := route(secured(t, testJob("linked", 2, 1), transport), config.Route{Prefer: []string{transport}, Direct: true})
			all := start(t, job)
			for _, s := range all {
				<-s.n.ready
				for i := range s.n.procs.All() {
					s.out.Line(t, prefixOf(s.n, i)+"sum ")
				}
			}
			for _, s := range all {
				wrong := lacksEstimates(s.n, transport)
				for end := time.Now().Add(patience); wrong != "" && time.Now().Before(end); { // who has no time to answer has none
					wrong = lacksEstimates(s.n, transport)
				}
				if wrong != "" {
					t.Error(wrong)
				}
			}
		})
	}
}

// lacksEstimates tells what a node does not know of its links to the other site by a transport.
func lacksEstimates(x *node, transport string) string {
	n := x.control.Describe(context.Background(), links.Request{All: true, ByHost: true})
	others := 0
	for i := range n.Views {
		v := &n.Views[i]
		if v.Plane == "fd" || v.Plane == "peer-shm" {
			continue // within the machine
		}
		others++
		if v.Transport != transport || v.Traffic == nil || v.Traffic.RTT <= 0 {
			return fmt.Sprintf("%s: %d to %d by %s, %s: %+v", n.Site, v.Local, v.Peer, v.Transport, v.Plane, v.Traffic)
		}
	}
	for _, c := range n.Channels {
		others++
		if c.Transport != transport || c.RTT <= 0 {
			return fmt.Sprintf("%s: %+v", n.Site, c)
		}
	}
	for _, h := range n.ByHost {
		if h.From != h.To && h.RTT <= 0 {
			return fmt.Sprintf("%s: %+v", n.Site, h)
		}
	}
	pairs := 0
	for _, p := range links.Merge([]links.FoundNode{{About: n.NodeInfo, Node: n}})[0].Pairs {
		if p.Speed != nil && p.Speed.HalfTrip > 0 && p.SiteA != p.SiteB {
			pairs++ // what the page shows
		}
	}
	if _, told := n.Retransmits[transport]; pairs != 2 || others < 3 || !told {
		return fmt.Sprintf("%s: %d links, %d pairs with an estimate, retransmits %v", n.Site, others, pairs, n.Retransmits)
	}
	return ""
}

// TestDataIsCounted: what procs have sent in fast boxes of shared memory, which no link counts, is
// in the figures of pairs and of hosts.
func TestDataIsCounted(t *testing.T) {
	job := withTransport(testJob("linked", 2, 2), "shm", nil)
	all := start(t, route(job, config.Route{Prefer: []string{"shm"}, Direct: true}))
	for _, s := range all {
		<-s.n.ready
		for i := range s.n.procs.All() {
			s.out.Line(t, prefixOf(s.n, i)+"sum ")
		}
	}
	for end := time.Now().Add(patience); ; {
		n := all[0].n.control.Describe(t.Context(), links.Request{All: true, ByHost: true})
		pairs, sum, hosts, messages := 0, uint64(0), uint64(0), uint64(0)
		for i := range n.Views {
			if v := &n.Views[i]; v.Traffic != nil && v.Transport == "shm" && v.Traffic.Data >= 8 {
				pairs++
				sum += v.Traffic.Data
			}
		}
		for _, h := range n.ByHost {
			hosts, messages = hosts+h.Data, messages+h.Messages
			linked := 0
			for _, l := range h.Links {
				if l.State == links.StateLinked && l.Transport == "shm" {
					linked += l.Pairs
				}
			}
			if linked != h.Pairs {
				pairs = -1 // not yet
			}
		}
		if pairs == 6 && sum == hosts && hosts >= 8*messages {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d pairs with %d bytes, hosts with %d in %d messages", pairs, sum, hosts, messages)
		}
	}
}

// TestLinksOfHosts: of pairs that nodes do not tell of one by one it is known what is under way
// between their hosts, as both ends count the same bytes.
func TestLinksOfHosts(t *testing.T) {
	for _, transport := range []string{"shm", "tcp", "quic"} {
		t.Run(transport, func(t *testing.T) {
			job := testJob("linked", 2, 2)
			if transport == "quic" {
				job = secured(t, job, transport)
			} else {
				job = withTransport(job, transport, nil)
			}
			all := start(t, route(job, config.Route{Prefer: []string{transport}, Direct: true}))
			for _, s := range all {
				<-s.n.ready
				for i := range s.n.procs.All() {
					s.out.Line(t, prefixOf(s.n, i)+"sum ")
				}
			}
			wrong := lacksHosts(t.Context(), all)
			for end := time.Now().Add(patience); wrong != "" && time.Now().Before(end); {
				wrong = lacksHosts(t.Context(), all)
			}
			if wrong != "" {
				t.Error(wrong)
			}
		})
	}
}

// lacksHosts tells what is wrong with the sums by host of a job of two hosts with two procs each,
// all linked and idle, whose nodes tell of one pair each.
func lacksHosts(ctx context.Context, all []*running) string {
	var found []links.FoundNode
	for _, s := range all {
		n := s.n.control.Describe(ctx, links.Request{All: true, ByHost: true, Views: 1})
		if len(n.Views) != 1 || n.Left != 5 {
			return fmt.Sprintf("%s tells of %d pairs, and leaves out %d", n.Site, len(n.Views), n.Left)
		}
		found = append(found, links.FoundNode{About: n.NodeInfo, Node: n})
	}
	known, pairs := 0, 0
	for _, h := range links.Merge(found)[0].BetweenHosts() {
		known, pairs = known+h.Known, pairs+h.Pairs()
		if h.Unknown+h.AWaits+h.BWaits > 0 || h.AToB+h.BToA > 0 {
			return fmt.Sprintf("%+v", h)
		}
	}
	if known != 6 || pairs != 6 {
		return fmt.Sprintf("%d of %d links are known", known, pairs)
	}
	return ""
}
