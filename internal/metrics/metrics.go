// Package metrics serves what a node knows of its part of a job to Prometheus.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"

	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/listen"
)

// Bounds of what anybody who can connect can make a node do.
const (
	connections = 16 // at a time
	scrapes     = 2  // that are answered at a time
	headerLimit = 16 << 10
	readLimit   = 5 * time.Second
	lookLimit   = time.Second // for the procs to answer
	writeLimit  = 10 * time.Second
)

// Settings say what is served, and where.
type Settings struct {
	Listen netip.AddrPort
	Job    string
	Site   string
	Log    hclog.Logger

	// Describe returns the state of the node and its procs, before ctx ends, and State how far the
	// node is.
	Describe func(ctx context.Context) *links.Node
	State    func() links.NodeState // not used by Add
}

// Server serves metrics over HTTP.
type Server struct {
	registry *prometheus.Registry

	http http.Server
	at   net.Addr
	done chan struct{}
}

// Serve begins to serve /metrics, /healthz and /readyz.
func Serve(s Settings) (*Server, error) {
	ln, err := listen.At(context.Background(), net.ListenConfig{}, s.Listen)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	registry := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{newCollector(s), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		if err := registry.Register(c); err != nil {
			return nil, errors.Join(fmt.Errorf("metrics: %w", err), ln.Close())
		}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: scrapes}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		phase := s.State()
		if phase != links.NodeRunning && phase != links.NodeSpare {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = fmt.Fprintln(w, phase)
	})
	m := &Server{registry: registry, at: ln.Addr(), done: make(chan struct{}), http: http.Server{
		Handler: mux, ReadTimeout: readLimit, WriteTimeout: writeLimit, IdleTimeout: time.Minute, MaxHeaderBytes: headerLimit,
		ErrorLog: s.Log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}}
	go func() {
		defer close(m.done)
		if err := m.http.Serve(netutil.LimitListener(ln, connections)); !errors.Is(err, http.ErrServerClosed) {
			s.Log.Warn("metrics are not served any more", "error", err)
		}
	}()
	return m, nil
}

// Add serves the metrics of another node of this process, too, until remove is called, which cuts
// short a scrape that is under way and waits for it: s.Describe is not called any more when it has
// returned. Its job, or its site, must have another name than those that are served already.
func (m *Server) Add(s Settings) (remove func(), err error) {
	return m.add(newCollector(s))
}

func (m *Server) add(c *collector) (remove func(), err error) {
	if err := m.registry.Register(c); err != nil {
		return nil, fmt.Errorf("metrics of %s at site %s: %w", c.Job, c.Site, err)
	}
	return func() {
		m.registry.Unregister(c)
		c.end()
	}, nil
}

// Address returns the address where the server listens.
func (m *Server) Address() net.Addr { return m.at }

// Close ends the server and all its connections.
func (m *Server) Close() {
	_ = m.http.Close()
	<-m.done
}

// collector asks the node at each scrape; without scrapes, nothing is counted.
type collector struct {
	Settings
	descs   []*prometheus.Desc // of table
	latency *latencies

	scraped sync.RWMutex    // locked for reading by a scrape
	life    context.Context // when it ends, scrapes find nothing, those that have begun before included
	cancel  context.CancelFunc
}

// end interrupts scrapes that ask the node, waits for them, and has further ones ask it no more.
func (c *collector) end() {
	c.cancel()
	c.scraped.Lock()
	defer c.scraped.Unlock()
}

func newCollector(s Settings) *collector {
	constant := prometheus.Labels{"mpi_job": valid(s.Job), "site": s.Site}
	c := &collector{Settings: s, latency: newLatencies(constant)}
	c.life, c.cancel = context.WithCancel(context.Background())
	for i := range table {
		m := &table[i]
		c.descs = append(c.descs, prometheus.NewDesc(m.name, m.help, m.labels, constant))
	}
	return c
}

func valid(s string) string { return strings.ToValidUTF8(s, "?") }

func (c *collector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		descs <- d
	}
	c.latency.histogram.Describe(descs)
}

func (c *collector) Collect(to chan<- prometheus.Metric) {
	c.scraped.RLock()
	defer c.scraped.RUnlock()
	if c.life.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(c.life, lookLimit)
	defer cancel()
	n := c.Settings.Describe(ctx)
	if c.life.Err() != nil {
		return // procs that have not answered yet are not silent
	}
	for i := range table {
		m := &table[i]
		m.values(n, func(v float64, labels ...string) {
			for i := range labels {
				labels[i] = valid(labels[i])
			}
			to <- prometheus.MustNewConstMetric(c.descs[i], m.kind(), v, labels...)
		})
	}
	c.latency.sample(n, time.Now())
	c.latency.histogram.Collect(to)
}
