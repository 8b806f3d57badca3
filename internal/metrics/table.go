package metrics

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/version"
	"github.com/openimpi/impi/internal/wireup"
)

// metric is a metric that is served. Names follow Prometheus' conventions: base units, and _total
// for what only grows. Labels come before those that all have, mpi_job and site.
type metric struct {
	name    string
	counter bool
	labels  []string
	help    string
	values  func(n *links.Node, add func(v float64, labels ...string))
}

func (m *metric) kind() prometheus.ValueType {
	if m.counter {
		return prometheus.CounterValue
	}
	return prometheus.GaugeValue
}

// hostOf is the host that a node runs on, or the addresses of those that it runs, as a site on one
// machine.
func hostOf(n *links.Node) string {
	if n.Host != "" {
		return n.Host
	}
	for i := range n.Sites {
		if n.Sites[i].Client == n.Client {
			return strings.Join(n.Sites[i].Hosts, ",")
		}
	}
	return ""
}

var table = []metric{
	{name: "impi_node_info", labels: []string{"job_id", "host", "version"}, help: "1, of each node. The ID is the same for all nodes of a job.",
		values: func(n *links.Node, add func(float64, ...string)) { add(1, n.ID, hostOf(n), version.String()) }},
	{name: "impi_job_phase", labels: []string{"phase"}, help: "1 for the phase in which this node is: starting, running, ending, or spare at a spare site.",
		values: func(n *links.Node, add func(float64, ...string)) {
			for _, p := range []links.NodeState{links.NodeStarting, links.NodeRunning, links.NodeEnding, links.NodeSpare} {
				add(truth(p == n.State), string(p))
			}
		}},
	{name: "impi_procs", labels: []string{"state"}, help: "Procs of this node: starting, init, running, finished or ended.",
		values: countProcs},
	{name: "impi_lost_procs", help: "Procs of the job, at all sites, without which it goes on (survive = true).",
		values: func(n *links.Node, add func(float64, ...string)) {
			sum := 0
			for _, l := range n.Lost {
				sum += l.Last - l.First + 1
			}
			add(float64(sum))
		}},
	{name: "impi_spare_sites", labels: []string{"spare", "state"}, help: "1 for the state of each of the job's spare sites, as this node sees it: absent, waiting, taken or lost.",
		values: func(n *links.Node, add func(float64, ...string)) {
			for _, s := range n.Spares {
				add(1, s.Name, s.State)
			}
		}},
	{name: "impi_spare_procs", labels: []string{"spare"}, help: "Procs that were spawned at each of the job's spare sites, by whichever site.",
		values: func(n *links.Node, add func(float64, ...string)) {
			for _, s := range n.Spares {
				add(float64(s.Procs), s.Name)
			}
		}},
	{name: "impi_proc_silent", labels: []string{"rank"}, help: "1 for a proc that does not answer within half a second, as it is stopped.",
		values: ofProcs(func(p *links.Proc, add func(float64, ...string)) {
			add(truth(p.State == links.ProcRunning && p.Silent != ""))
		})},
	{name: "impi_proc_blocked_seconds", labels: []string{"rank"}, help: "For how long the proc has been asleep in a call of MPI; 0: it is not.",
		values: ofProcs(func(p *links.Proc, add func(float64, ...string)) {
			if p.Counts != nil {
				add(blockedFor(p))
			}
		})},
	{name: "impi_proc_sleeps_total", counter: true, labels: []string{"rank"}, help: "How often the proc has gone to sleep in a call of MPI, after polling.",
		values: ofCounts(func(c *links.Counts) float64 { return float64(c.Sleeps) })},
	{name: "impi_proc_sleep_seconds_total", counter: true, labels: []string{"rank"}, help: "How long it has slept there. Time of polling is not in it.",
		values: ofCounts(func(c *links.Counts) float64 { return c.Slept.Seconds() })},
	{name: "impi_proc_sent_messages_total", counter: true, labels: []string{"rank"}, help: "Messages that the proc has sent to others; collective operations on the host's board are not counted.",
		values: ofCounts(func(c *links.Counts) float64 { return float64(c.Messages) })},
	{name: "impi_proc_sent_data_bytes_total", counter: true, labels: []string{"rank"}, help: "Bytes of data in these messages, whatever way they went.",
		values: ofCounts(func(c *links.Counts) float64 { return float64(c.Data) })},
	{name: "impi_proc_sent_bytes_total", counter: true, labels: []string{"rank"}, help: "Bytes sent over direct links, headers included, but for messages of up to 64 KiB within a machine, which pass by this counter.",
		values: ofCounts(func(c *links.Counts) float64 { return float64(c.Sent) })},
	{name: "impi_proc_received_bytes_total", counter: true, labels: []string{"rank"}, help: "The same, received.",
		values: ofCounts(func(c *links.Counts) float64 { return float64(c.Received) })},
	{name: "impi_proc_unexpected_messages", labels: []string{"rank"}, help: "Messages that have come and for which the proc has no receive yet.",
		values: ofCounts(func(c *links.Counts) float64 { return float64(c.Unexpected) })},
	{name: "impi_proc_unexpected_bytes", labels: []string{"rank"}, help: "Bytes of them that are in the proc's memory.",
		values: ofCounts(func(c *links.Counts) float64 { return float64(c.UnexpectedBytes) })},
	{name: "impi_proc_calls_total", counter: true, labels: []string{"rank", "class"}, help: "Calls of MPI by class; with calls = true alone, as the next two.",
		values: ofCalls(func(c *wireup.CallSum) float64 { return float64(c.Calls) })},
	{name: "impi_proc_call_seconds_total", counter: true, labels: []string{"rank", "class"}, help: "Time in these calls, in which a proc may also have worked or copied; with calls = true alone.",
		values: ofCalls(func(c *wireup.CallSum) float64 { return time.Duration(c.Time).Seconds() })},
	{name: "impi_proc_wait_seconds_total", counter: true, labels: []string{"rank", "cause"}, help: "Time for which the proc was blocked in calls of MPI, polling or asleep, by what it waited for: recv, send, collective, one-sided or other; with calls = true alone.",
		values: ofAccounts(func(a *wireup.Account, sum func(float64, string)) {
			for _, w := range a.Waits {
				sum(time.Duration(w.Time).Seconds(), w.Cause)
			}
		})},
	{name: "impi_pairs", labels: []string{"state", "transport", "data_plane"}, help: "Pairs of a proc of this node and another one, by the state of their link, as impi-node links names it.",
		values: countPairs},
	{name: "impi_pair_resumes_total", counter: true, labels: []string{"transport"}, help: "How often links of these pairs were resumed after their connections broke.",
		values: func(n *links.Node, add func(float64, ...string)) {
			sums := newSums()
			eachLink(n, func(l links.LinkCount) { sums.add(float64(l.Resumes), l.Transport) })
			sums.all(add)
		}},
	{name: "impi_host_sent_messages_total", counter: true, labels: []string{"from", "to"}, help: "Messages that the procs of a host of this node have sent to those of another one, or among each other. Hosts are IMPI host ranks, as in the table of hosts that impi-node ui shows.",
		values: ofHosts(func(x *links.HostCounts) (float64, bool) { return float64(x.Messages), true })},
	{name: "impi_host_sent_data_bytes_total", counter: true, labels: []string{"from", "to"}, help: "Bytes of data in these messages, whatever way they went, of all pairs of procs, however many there are.",
		values: ofHosts(func(x *links.HostCounts) (float64, bool) { return float64(x.Data), true })},
	{name: "impi_host_latency_seconds", labels: []string{"from", "to"}, help: "Half of the shortest round trip of these procs' links, or of the hosts' channel where packets go through the agents, as for impi_link_latency_seconds.",
		values: ofHosts(func(x *links.HostCounts) (float64, bool) { return x.RTT.Seconds() / 2, x.RTT > 0 })},
	{name: "impi_host_packed_sent_bytes_total", counter: true, labels: []string{"from", "to"}, help: "Of these procs' links that are compressed, the bytes that the procs have given them.",
		values: ofCompressed(func(x *wireup.CompressedBytes) uint64 { return x.Sent })},
	{name: "impi_host_packed_travelled_bytes_total", counter: true, labels: []string{"from", "to"}, help: "The bytes that have travelled for those. One minus their ratio is what compression saves.",
		values: ofCompressed(func(x *wireup.CompressedBytes) uint64 { return x.SentCompressed })},
	{name: "impi_channels", labels: []string{"state", "transport"}, help: "Channels of this node's hosts to others, by state.",
		values: func(n *links.Node, add func(float64, ...string)) {
			sums := newSums()
			for _, c := range n.Channels {
				sums.add(1, string(c.State), c.Transport)
			}
			sums.all(add)
		}},
	{name: "impi_channel_resumes_total", counter: true, help: "How often they were resumed.",
		values: func(n *links.Node, add func(float64, ...string)) {
			sum := 0
			for _, c := range n.Channels {
				sum += c.Resumes
			}
			add(float64(sum))
		}},
	{name: "impi_link_retransmits_total", counter: true, labels: []string{"transport"}, help: "TCP segments and QUIC packets that this node's procs, channels and plugins had to send again, as they were lost or seemed so, those of closed links included.",
		values: func(n *links.Node, add func(float64, ...string)) {
			for _, t := range slices.Sorted(maps.Keys(n.Retransmits)) {
				add(float64(n.Retransmits[t]), t)
			}
		}},
	{name: "impi_plugin_healthy", labels: []string{"transport"}, help: "1 for a plugin that serves; 0 while it starts, or after it has failed.",
		values: ofPlugins(func(t *links.Transport) (float64, bool) {
			return truth(t.State == "healthy" || t.State == "degraded"), true
		})},
	{name: "impi_plugin_starts_total", counter: true, labels: []string{"transport"}, help: "How many processes of the plugin got ready; more than 1: it was started again.",
		values: ofPlugins(func(t *links.Transport) (float64, bool) { return float64(t.Starts), true })},
	{name: "impi_plugin_failures", labels: []string{"transport"}, help: "Deaths and failed starts in a row.",
		values: ofPlugins(func(t *links.Transport) (float64, bool) { return float64(t.Failures), true })},
	{name: "impi_plugin_links_total", counter: true, labels: []string{"transport"}, help: "Links and channels of the job that it has made, those that replace lost ones included; not those by which nodes ask each other or measure.",
		values: ofPlugins(func(t *links.Transport) (float64, bool) { return float64(t.Links), true })},
	{name: "impi_plugin_resident_bytes", labels: []string{"transport"}, help: "Memory of its process.",
		values: ofPlugins(func(t *links.Transport) (float64, bool) {
			if t.Usage == nil {
				return 0, false
			}
			return float64(t.Usage.Resident), true
		})},
	{name: "impi_plugin_cpu_seconds_total", counter: true, labels: []string{"transport"}, help: "Time of processors that its process has used.",
		values: ofPlugins(func(t *links.Transport) (float64, bool) {
			if t.Usage == nil {
				return 0, false
			}
			return t.Usage.CPU.Seconds(), true
		})},
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func countProcs(n *links.Node, add func(float64, ...string)) {
	count := make(map[links.ProcState]int)
	for i := range n.Procs {
		count[n.Procs[i].State]++
	}
	for _, s := range []links.ProcState{links.ProcStarting, links.ProcInit, links.ProcRunning, links.ProcFinished, links.ProcEnded} {
		name := string(s)
		if s == links.ProcInit {
			name = "init"
		}
		add(float64(count[s]), name)
	}
}

// ofProcs makes a metric of each proc that has a rank.
func ofProcs(value func(p *links.Proc, add func(float64, ...string))) func(*links.Node, func(float64, ...string)) {
	return func(n *links.Node, add func(float64, ...string)) {
		for i := range n.Procs {
			if p := &n.Procs[i]; p.Rank >= 0 {
				value(p, func(v float64, _ ...string) { add(v, strconv.Itoa(p.Rank)) })
			}
		}
	}
}

func blockedFor(p *links.Proc) float64 {
	if p.Blocked == nil {
		return 0
	}
	return p.Blocked.Time.Seconds()
}

// ofCounts makes a metric of each proc that has answered.
func ofCounts(value func(*links.Counts) float64) func(*links.Node, func(float64, ...string)) {
	return ofProcs(func(p *links.Proc, add func(float64, ...string)) {
		if p.Counts != nil {
			add(value(p.Counts))
		}
	})
}

// ofAccounts makes a metric of each proc that has answered and name that it has counted something
// for.
func ofAccounts(value func(a *wireup.Account, sum func(v float64, name string))) func(*links.Node, func(float64, ...string)) {
	return func(n *links.Node, add func(float64, ...string)) {
		sums := newSums()
		for i := range n.Procs {
			if p := &n.Procs[i]; p.Rank >= 0 && p.Silent == "" && p.Account != nil { // a silent proc has the account of an earlier scrape
				value(p.Account, func(v float64, name string) { sums.add(v, strconv.Itoa(p.Rank), strings.ReplaceAll(name, "\x00", "?")) })
			}
		}
		sums.all(add)
	}
}

// ofCalls is ofAccounts for the classes of calls.
func ofCalls(value func(*wireup.CallSum) float64) func(*links.Node, func(float64, ...string)) {
	return ofAccounts(func(a *wireup.Account, sum func(float64, string)) {
		for i := range a.Calls {
			sum(value(&a.Calls[i]), a.Calls[i].Class)
		}
	})
}

// ofPlugins makes a metric with a value for each plugin for which value returns true.
func ofPlugins(value func(*links.Transport) (float64, bool)) func(*links.Node, func(float64, ...string)) {
	return func(n *links.Node, add func(float64, ...string)) {
		for i := range n.Transports {
			if v, ok := value(&n.Transports[i]); ok {
				add(v, n.Transports[i].Name)
			}
		}
	}
}

// ofHosts makes a metric of each host of the node and each that its procs have a link to.
func ofHosts(value func(*links.HostCounts) (float64, bool)) func(*links.Node, func(float64, ...string)) {
	return func(n *links.Node, add func(float64, ...string)) {
		for i := range n.ByHost {
			if v, ok := value(&n.ByHost[i]); ok {
				add(v, strconv.Itoa(n.ByHost[i].From), strconv.Itoa(n.ByHost[i].To))
			}
		}
	}
}

// ofCompressed is ofHosts for those whose procs have links that are compressed.
func ofCompressed(value func(*wireup.CompressedBytes) uint64) func(*links.Node, func(float64, ...string)) {
	return ofHosts(func(x *links.HostCounts) (float64, bool) {
		if x.Compressed == nil {
			return 0, false
		}
		return float64(value(x.Compressed)), true
	})
}

func countPairs(n *links.Node, add func(float64, ...string)) {
	sums := newSums()
	eachLink(n, func(l links.LinkCount) { sums.add(float64(l.Pairs), string(l.State), l.Transport, l.Plane) })
	sums.all(add)
}

// eachLink calls f for each pair of a proc of the node and another one, or for all of two hosts
// that are alike if the node does not tell of each.
func eachLink(n *links.Node, f func(links.LinkCount)) {
	if n.Left == 0 {
		for i := range n.Views {
			v := &n.Views[i]
			f(links.LinkCount{State: v.State, Transport: v.Transport, Plane: v.Plane, Pairs: 1, Resumes: v.Resumes})
		}
		return
	}
	for i := range n.ByHost {
		for _, l := range n.ByHost[i].Links {
			f(l)
		}
	}
}
