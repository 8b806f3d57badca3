package metrics

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/wireup"
)

// sample is a node with something of everything.
func sample() *links.Node {
	return &links.Node{
		NodeInfo: links.NodeInfo{ID: "a1b2", Host: "10.0.0.1"}, State: links.NodeRunning,
		Procs: []links.Proc{
			{Rank: 4, State: links.ProcRunning, Counts: &links.Counts{
				Messages: 7, Data: 900, Sent: 1000, Received: 2000, Unexpected: 3, UnexpectedBytes: 96, Sleeps: 5, Slept: 1500 * time.Millisecond,
			}, Blocked: &links.Blocked{Time: 2500 * time.Millisecond}, Account: &wireup.Account{
				Calls: []wireup.CallSum{{Name: "MPI_Send", Class: "send", Calls: 3, Time: 5e8}, {Name: "MPI_Ssend", Class: "send", Calls: 1, Time: 1e9}},
				Waits: []wireup.WaitSum{{Cause: "recv", Peer: 1, Time: 1e9}, {Cause: "recv", Peer: wireup.NoPeer, Time: 5e8}, {Cause: "a\x00b", Time: 1e9}},
			}},
			{Rank: 5, State: links.ProcRunning, Silent: "it does not answer", Account: &wireup.Account{
				Calls: []wireup.CallSum{{Name: "MPI_Send", Class: "send", Calls: 3, Time: 5e8}}, Waits: []wireup.WaitSum{{Cause: "recv", Peer: 1, Time: 1e9}},
			}},
			{Rank: -1, State: links.ProcInit},
		},
		Transports: []links.Transport{
			{Name: "tcp", State: "healthy", Starts: 2, Links: 9, Usage: &links.Resources{Resident: 1 << 20, CPU: time.Second}},
			{Name: "quic", State: "failed", Failures: 5},
		},
		Sites: []links.Site{{Name: "alpha", Procs: 8}},
		Views: []links.View{
			{State: links.StateLinked, Transport: "tcp", Plane: "fd", Resumes: 1, Traffic: &links.Traffic{RTT: 60 * time.Microsecond}}, {State: links.StateLinked, Transport: "tcp", Plane: "fd", Resumes: 2},
			{State: links.StateAgents},
		},
		Channels: []links.Channel{{State: links.StateLinked, Transport: "tcp", Resumes: 4}}, Retransmits: map[string]uint64{"tcp": 11, "quic": 0},
		Lost:   []links.Loss{{First: 1, Last: 3}, {First: 6, Last: 6}},
		Spares: []links.Spare{{Name: "reserve", State: "taken", Procs: 2}},
		ByHost: []links.HostCounts{{From: 0, To: 1, Messages: 12, Data: 3400, RTT: 80 * time.Microsecond, Compressed: &wireup.CompressedBytes{Sent: 800, SentCompressed: 200}}},
	}
}

// serve serves a node, and returns what is at a path, with its status.
func serve(t *testing.T, describe func(context.Context) *links.Node) func(path string) (string, int) {
	t.Helper()
	m, err := Serve(Settings{Listen: netip.MustParseAddrPort("127.0.0.1:0"), Job: "heat", Site: "alpha", Log: hclog.NewNullLogger(), Describe: describe, State: func() links.NodeState { return describe(t.Context()).State }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return func(path string) (string, int) {
		t.Helper()
		r, err := http.Get("http://" + m.Address().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b), r.StatusCode
	}
}

// TestMetricsOfManyPairs: where a node does not tell of all pairs its hosts' sums have them.
func TestMetricsOfManyPairs(t *testing.T) {
	n := sample()
	n.Left = 5
	n.ByHost = []links.HostCounts{
		{From: 0, To: 1, Links: []links.LinkCount{{State: links.StateLinked, Transport: "tcp", Plane: "fd", Pairs: 7000, Resumes: 2}, {State: links.StateAgents, Pairs: 40}}},
		{From: 0, To: 2, Compressed: &wireup.CompressedBytes{Sent: 4000, SentCompressed: 1000}, Links: []links.LinkCount{{State: links.StateLinked, Transport: "tcp", Plane: "fd", Pairs: 5000, Resumes: 1}}},
	}
	text, _ := serve(t, func(context.Context) *links.Node { return n })("/metrics")
	for _, want := range []string{
		`impi_pairs{data_plane="fd",mpi_job="heat",site="alpha",state="linked",transport="tcp"} 12000`,
		`impi_pairs{data_plane="",mpi_job="heat",site="alpha",state="agents",transport=""} 40`,
		`impi_pair_resumes_total{mpi_job="heat",site="alpha",transport="tcp"} 3`,
		`impi_host_packed_sent_bytes_total{from="0",mpi_job="heat",site="alpha",to="2"} 4000`,
		`impi_host_packed_travelled_bytes_total{from="0",mpi_job="heat",site="alpha",to="2"} 1000`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestMetrics(t *testing.T) {
	get := serve(t, func(context.Context) *links.Node { return sample() })
	text, status := get("/metrics")
	if status != http.StatusOK {
		t.Fatalf("status %d: %s", status, text)
	}
	for _, want := range []string{
		`impi_job_phase{mpi_job="heat",phase="running",site="alpha"} 1`,
		`impi_job_phase{mpi_job="heat",phase="starting",site="alpha"} 0`,
		`impi_procs{mpi_job="heat",site="alpha",state="running"} 2`,
		`impi_procs{mpi_job="heat",site="alpha",state="init"} 1`,
		`impi_procs{mpi_job="heat",site="alpha",state="ended"} 0`,
		`impi_proc_silent{mpi_job="heat",rank="5",site="alpha"} 1`,
		`impi_proc_silent{mpi_job="heat",rank="4",site="alpha"} 0`,
		`impi_proc_blocked_seconds{mpi_job="heat",rank="4",site="alpha"} 2.5`,
		`impi_proc_sleeps_total{mpi_job="heat",rank="4",site="alpha"} 5`,
		`impi_proc_sleep_seconds_total{mpi_job="heat",rank="4",site="alpha"} 1.5`,
		`impi_proc_sent_messages_total{mpi_job="heat",rank="4",site="alpha"} 7`,
		`impi_proc_sent_data_bytes_total{mpi_job="heat",rank="4",site="alpha"} 900`,
		`impi_proc_sent_bytes_total{mpi_job="heat",rank="4",site="alpha"} 1000`,
		`impi_proc_received_bytes_total{mpi_job="heat",rank="4",site="alpha"} 2000`,
		`impi_proc_unexpected_messages{mpi_job="heat",rank="4",site="alpha"} 3`,
		`impi_proc_unexpected_bytes{mpi_job="heat",rank="4",site="alpha"} 96`,
		`impi_proc_calls_total{class="send",mpi_job="heat",rank="4",site="alpha"} 4`,
		`impi_proc_call_seconds_total{class="send",mpi_job="heat",rank="4",site="alpha"} 1.5`,
		`impi_proc_wait_seconds_total{cause="recv",mpi_job="heat",rank="4",site="alpha"} 1.5`,
		`impi_proc_wait_seconds_total{cause="a?b",mpi_job="heat",rank="4",site="alpha"} 1`,
		`impi_pairs{data_plane="fd",mpi_job="heat",site="alpha",state="linked",transport="tcp"} 2`,
		`impi_pairs{data_plane="",mpi_job="heat",site="alpha",state="agents",transport=""} 1`,
		`impi_pair_resumes_total{mpi_job="heat",site="alpha",transport="tcp"} 3`,
		`impi_channels{mpi_job="heat",site="alpha",state="linked",transport="tcp"} 1`,
		`impi_channel_resumes_total{mpi_job="heat",site="alpha"} 4`,
		`impi_link_retransmits_total{mpi_job="heat",site="alpha",transport="quic"} 0`,
		`impi_link_retransmits_total{mpi_job="heat",site="alpha",transport="tcp"} 11`,
		`impi_plugin_healthy{mpi_job="heat",site="alpha",transport="tcp"} 1`,
		`impi_plugin_healthy{mpi_job="heat",site="alpha",transport="quic"} 0`,
		`impi_plugin_starts_total{mpi_job="heat",site="alpha",transport="tcp"} 2`,
		`impi_plugin_failures{mpi_job="heat",site="alpha",transport="quic"} 5`,
		`impi_plugin_links_total{mpi_job="heat",site="alpha",transport="tcp"} 9`,
		`impi_plugin_resident_bytes{mpi_job="heat",site="alpha",transport="tcp"} 1.048576e+06`,
		`impi_plugin_cpu_seconds_total{mpi_job="heat",site="alpha",transport="tcp"} 1`,
		`impi_link_latency_seconds_bucket{mpi_job="heat",peer_site="alpha",site="alpha",transport="tcp",le="2.5e-05"} 0`,
		`impi_link_latency_seconds_bucket{mpi_job="heat",peer_site="alpha",site="alpha",transport="tcp",le="5e-05"} 1`,
		`impi_link_latency_seconds_count{mpi_job="heat",peer_site="alpha",site="alpha",transport="tcp"} 1`,
		`impi_lost_procs{mpi_job="heat",site="alpha"} 4`,
		`impi_spare_sites{mpi_job="heat",site="alpha",spare="reserve",state="taken"} 1`,
		`impi_spare_procs{mpi_job="heat",site="alpha",spare="reserve"} 2`,
		`impi_host_sent_messages_total{from="0",mpi_job="heat",site="alpha",to="1"} 12`,
		`impi_host_sent_data_bytes_total{from="0",mpi_job="heat",site="alpha",to="1"} 3400`,
		`impi_host_latency_seconds{from="0",mpi_job="heat",site="alpha",to="1"} 4e-05`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("there is no %s", want)
		}
	}
	for _, bad := range []string{`impi_proc_blocked_seconds{mpi_job="heat",rank="5"`, `rank="-1"`, `impi_plugin_resident_bytes{mpi_job="heat",site="alpha",transport="quic"`} {
		if strings.Contains(text, bad) {
			t.Errorf("there is %s, which nobody knows", bad)
		}
	}
	for line := range strings.Lines(text) {
		if strings.Contains(line, `rank="5"`) && !strings.HasPrefix(line, "impi_proc_silent{") {
			t.Errorf("rank 5 does not answer, and there is %s", line)
		}
	}
	promtool(t, text)
}

// TestServed: of a node with something of everything each metric of the table, which TestDocs
// compares with docs/metrics.md, has a sample, and there is no other one.
func TestServed(t *testing.T) {
	text, _ := serve(t, func(context.Context) *links.Node { return sample() })("/metrics")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var served []string
	for name, f := range families {
		if len(f.GetMetric()) > 0 && !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			served = append(served, name)
		}
	}
	want := []string{latencyName}
	for i := range table {
		want = append(want, table[i].name)
	}
	slices.Sort(served)
	slices.Sort(want)
	if !slices.Equal(served, want) {
		t.Errorf("served are\n%s\nwant\n%s", strings.Join(served, "\n"), strings.Join(want, "\n"))
	}
}

// promtool has Prometheus judge names, types and help.
func promtool(t *testing.T, text string) {
	t.Helper()
	cmd := exec.Command(skips.ProgramOf(t, "promtool", "prometheus"), "check", "metrics")
	cmd.Stdin = strings.NewReader(text)
	if b, err := cmd.CombinedOutput(); err != nil || len(b) > 0 {
		t.Errorf("promtool: %v\n%s", err, b)
	}
}

func TestHealth(t *testing.T) {
	phase := links.NodeStarting
	get := serve(t, func(context.Context) *links.Node { return &links.Node{State: phase} })
	for _, c := range []struct {
		path string
		set  links.NodeState
		text string
		want int
	}{
		{"/healthz", links.NodeStarting, "ok\n", http.StatusOK},
		{"/readyz", links.NodeStarting, "starting\n", http.StatusServiceUnavailable},
		{"/readyz", links.NodeRunning, "running\n", http.StatusOK},
		{"/readyz", links.NodeEnding, "ending\n", http.StatusServiceUnavailable},
		{"/", links.NodeRunning, "404 page not found\n", http.StatusNotFound},
	} {
		phase = c.set
		if text, status := get(c.path); text != c.text || status != c.want {
			t.Errorf("%s while %s: %d %q", c.path, c.set, status, text)
		}
	}
}

// TestOddNames: names come from files, and need not be UTF-8.
func TestOddNames(t *testing.T) {
	m, err := Serve(Settings{Listen: netip.MustParseAddrPort("127.0.0.1:0"), Job: "a\xffb", Log: hclog.NewNullLogger(), Describe: func(context.Context) *links.Node {
		return &links.Node{NodeInfo: links.NodeInfo{Host: "\xfe"}}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	r, err := http.Get("http://" + m.Address().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if b, err := io.ReadAll(r.Body); err != nil || !strings.Contains(string(b), `mpi_job="a?b"`) || !strings.Contains(string(b), `host="?"`) {
		t.Errorf("%s, %v", b, err)
	}
}

// TestPortInUse: what the operator has to know.
func TestPortInUse(t *testing.T) {
	s := Settings{Listen: netip.MustParseAddrPort("127.0.0.1:0"), Log: hclog.NewNullLogger(), Describe: func(context.Context) *links.Node { return &links.Node{} }}
	m, err := Serve(s)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s.Listen = netip.MustParseAddrPort(m.Address().String())
	if _, err := Serve(s); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("%v", err)
	}
}

// TestDocs compares docs/metrics.md and the dashboard with what is served.
func TestDocs(t *testing.T) {
	b, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "| `impi_") {
			rows = append(rows, strings.TrimSpace(line))
		}
	}
	var want []string
	known := make(map[string]bool)
	for i := range table {
		want = append(want, table[i].row())
		known[table[i].name] = true
	}
	want = append(want, rowOf(latencyName, "histogram", latencyLabels, latencyHelp))
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		known[latencyName+suffix] = true
	}
	if got, want := strings.Join(rows, "\n"), strings.Join(want, "\n"); got != want {
		t.Errorf("docs/metrics.md has\n%s\nwant\n%s", got, want)
	}
	dashboard, err := os.ReadFile("../../docs/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.FieldsFunc(string(dashboard), func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') })
	n := 0
	for _, w := range words {
		if strings.HasPrefix(w, "impi_") {
			if n++; !known[w] {
				t.Errorf("docs/grafana.json has %s, which is not served", w)
			}
		}
	}
	if n < 10 {
		t.Errorf("docs/grafana.json has %d metrics", n)
	}
}

var (
	selector = regexp.MustCompile(`(impi_[a-z_]+)(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`([a-z_]+) *(?:=~|!~|!=|=) *"`)
	grouping = regexp.MustCompile(`(?:by|on|without|ignoring) *\(([^)]*)\)`)
	shown    = regexp.MustCompile(`\{\{ *([a-z_]+) *\}\}`)
	listed   = regexp.MustCompile(`label_values\((impi_[a-z_]+), *([a-z_]+)\)`)
)

// wrongLabels returns the labels that a query of the dashboard uses, or the legend of its results,
// and that the metrics do not have. of has the labels of each metric.
func wrongLabels(of map[string][]string, query, legend string) (wrong []string) {
	var all []string
	for _, m := range selector.FindAllStringSubmatch(query, -1) {
		all = append(all, of[m[1]]...)
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(of[m[1]], l[1]) {
				wrong = append(wrong, m[1]+" by "+l[1])
			}
		}
	}
	var groups [][]string
	for _, g := range grouping.FindAllStringSubmatch(query, -1) {
		labels := strings.FieldsFunc(g[1], func(r rune) bool { return r == ',' || r == ' ' })
		groups = append(groups, labels)
		for _, l := range labels {
			if !slices.Contains(all, l) {
				wrong = append(wrong, "grouped by "+l)
			}
		}
	}
	if len(groups) > 0 { // what is outermost comes first
		all = groups[0]
	}
	for _, l := range shown.FindAllStringSubmatch(legend, -1) {
		if !slices.Contains(all, l[1]) {
			wrong = append(wrong, "legend with "+l[1])
		}
	}
	return wrong
}

// TestDashboardLabels: queries and legends of the dashboard use labels that their metrics have.
func TestDashboardLabels(t *testing.T) {
	of := make(map[string][]string)
	common := []string{"mpi_job", "site", "instance"}
	for i := range table {
		of[table[i].name] = append(table[i].labels, common...)
	}
	of[latencyName+"_bucket"] = append(append([]string{"le"}, latencyLabels...), common...)
	b, err := os.ReadFile("../../docs/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
		Templating struct{ List []struct{ Query string } }
	}
	if err := json.Unmarshal(b, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, p := range dashboard.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("%q shows nothing", p.Title)
		}
		for _, x := range p.Targets {
			if wrong := wrongLabels(of, x.Expr, x.LegendFormat); len(wrong) > 0 || !strings.Contains(x.Expr, `mpi_job=~"$mpi_job"`) {
				t.Errorf("%q: %s: %q", p.Title, x.Expr, wrong)
			}
		}
	}
	variables := 0
	for _, v := range dashboard.Templating.List {
		for _, m := range listed.FindAllStringSubmatch(v.Query, -1) {
			if variables++; !slices.Contains(of[m[1]], m[2]) {
				t.Errorf("%s has no %s", m[1], m[2])
			}
		}
	}
	if len(dashboard.Panels) < 10 || variables == 0 {
		t.Errorf("%d panels, %d variables", len(dashboard.Panels), variables)
	}
	for query, legend := range map[string]string{
		`sum by (site) (impi_procs{mpi_job="x"})`: "{{state}}", `impi_procs{rank="1"}`: "", `sum by (rank) (impi_procs)`: "", `impi_pairs`: "{{rank}}",
	} {
		if len(wrongLabels(of, query, legend)) != 1 {
			t.Errorf("%s with %s seems right", query, legend)
		}
	}
}

// row is the metric's row in docs/metrics.md.
func (m *metric) row() string {
	kind := "gauge"
	if m.counter {
		kind = "counter"
	}
	return rowOf(m.name, kind, m.labels, m.help)
}

func rowOf(name, kind string, labels []string, help string) string {
	quoted := make([]string, len(labels))
	for i, l := range labels {
		quoted[i] = "`" + l + "`"
	}
	return "| `" + name + "` | " + kind + " | " + strings.Join(quoted, ", ") + " | " + help + " |"
}

// TestLatency: a link in use gives a sample each period, however often it is asked for.
func TestLatency(t *testing.T) {
	l := newLatencies(nil)
	bytes := func(n uint64) links.Bytes { return links.Bytes{Sent: &n, Received: &n} }
	n := &links.Node{
		Sites: []links.Site{{Name: "alpha", Procs: 2, Hosts: []string{"a", "b"}}, {Client: 1, First: 2, Procs: 2, Hosts: []string{"c"}}},
		Views: []links.View{
			{Local: 0, Peer: 1, Transport: "tcp", Traffic: &links.Traffic{RTT: 60 * time.Microsecond, Bytes: bytes(10)}},
			{Local: 0, Peer: 2, Transport: "tcp", Traffic: &links.Traffic{RTT: 20 * time.Millisecond, Bytes: bytes(10)}},
			{Local: 0, Peer: 3, Transport: "shm", Traffic: &links.Traffic{Bytes: bytes(10)}}, // nobody estimates it
			{Local: 1, Peer: 3, Transport: "tcp"}, // silent
		},
		Channels: []links.Channel{{From: 1, To: 2, Transport: "tcp", RTT: 30 * time.Millisecond, Bytes: bytes(1)}},
	}
	begun := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		after         time.Duration
		inside, other uint64
	}{{0, 1, 2}, {samplePeriod - 1, 1, 2}, {samplePeriod, 2, 2}} {
		l.sample(n, begun.Add(step.after))
		inside, other := histogramOf(t, l, "alpha"), histogramOf(t, l, "client 1")
		if inside.GetSampleCount() != step.inside || other.GetSampleCount() != step.other {
			t.Errorf("after %v: %v inside, %v to the other site", step.after, inside, other)
		}
		if got, want := other.GetSampleSum(), 0.025; got < 0.99*want || got > 1.01*want {
			t.Errorf("the samples to the other site have the sum %v, want %v", got, want)
		}
		n.Views[0].Traffic.Bytes = bytes(20) // the others rest
	}
}

func histogramOf(t *testing.T, l *latencies, site string) *dto.Histogram {
	t.Helper()
	var m dto.Metric
	if err := l.histogram.WithLabelValues("tcp", site).(prometheus.Metric).Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetHistogram()
}
