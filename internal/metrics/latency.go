package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/openimpi/impi/internal/links"
)

// samplePeriod is the shortest time between two samples of a link, however many scrape.
const samplePeriod = 5 * time.Second

const (
	latencyName = "impi_link_latency_seconds"
	latencyHelp = "Half of the round trip of links and channels to a site, the own one included, as the kernel (tcp) or the transport (quic) estimates it from acknowledgements. shm and unix have none: nothing comes back on them that the program has not sent, so that only a measurement would tell (impi-node links -measure). A link in use gives a sample at each scrape, but not more often than each 5 s."
)

var (
	latencyLabels  = []string{"transport", "peer_site"}
	latencyBuckets = []float64{5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 0.5, 1}
)

// latencies is the histogram of the latency of links. Estimates are smoothed by who makes them and
// do not change while nothing is sent, so a link that has moved no bytes since its last sample
// gives none.
type latencies struct {
	histogram *prometheus.HistogramVec

	mu    sync.Mutex
	last  time.Time
	moved map[sampled]uint64 // bytes, at the last sample
}

// sampled is a link: of two ranks, or a channel of two hosts.
type sampled struct {
	channel  bool
	from, to int
}

func newLatencies(constant prometheus.Labels) *latencies {
	return &latencies{histogram: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: latencyName, Help: latencyHelp, ConstLabels: constant, Buckets: latencyBuckets,
	}, latencyLabels)}
}

func (l *latencies) sample(n *links.Node, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.last.IsZero() && now.Sub(l.last) < samplePeriod {
		return
	}
	before := l.moved
	l.moved = make(map[sampled]uint64)
	take := func(x sampled, transport, site string, rtt time.Duration, b links.Bytes) {
		if rtt <= 0 || transport == "" {
			return
		}
		bytes := links.ValueOf(b.Sent) + links.ValueOf(b.Received)
		l.moved[x] = bytes
		if was, known := before[x]; known && was == bytes && b.Sent != nil {
			return
		}
		l.histogram.WithLabelValues(valid(transport), valid(site)).Observe(rtt.Seconds() / 2)
	}
	for i := range n.Views {
		if v := &n.Views[i]; v.Traffic != nil {
			take(sampled{false, v.Local, v.Peer}, v.Transport, siteOf(n, v.Peer), v.Traffic.RTT, v.Traffic.Bytes)
		}
	}
	for i := range n.Channels {
		c := &n.Channels[i]
		take(sampled{true, c.From, c.To}, c.Transport, siteOfHost(n, c.To), c.RTT, c.Bytes)
	}
	if len(l.moved) > 0 { // otherwise nothing has an estimate yet, as at the start
		l.last = now
	}
}

func siteOf(n *links.Node, rank int) string {
	for i := range n.Sites {
		if s := &n.Sites[i]; rank >= s.First && rank < s.First+s.Procs {
			return s.Label()
		}
	}
	return ""
}

// siteOfHost names the site of an IMPI host rank: they are numbered by sites.
func siteOfHost(n *links.Node, host int) string {
	for i := range n.Sites {
		if host < len(n.Sites[i].Hosts) {
			return n.Sites[i].Label()
		}
		host -= len(n.Sites[i].Hosts)
	}
	return ""
}
