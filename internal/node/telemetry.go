package node

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/spawn"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/procs"
	"github.com/openimpi/impi/internal/spawner"
	"github.com/openimpi/impi/internal/telemetry"
	"github.com/openimpi/impi/internal/version"
)

// lastSpans bounds how long a node that ends sends its remaining spans. Tests raise it, as their
// machines are slow.
var lastSpans = 2 * time.Second

// spans are what a node tells an OpenTelemetry collector of itself and of the job. They do nothing
// if the file names none.
type spans struct {
	tracer *telemetry.Tracer
	job    *telemetry.Span // of the whole job, which the head of the first site of ours ends
	node   *telemetry.Span
}

func newSpans(n *node) (s spans) {
	if n.opt.spawned != nil {
		return spansOfWorld(n, n.opt.root.spans.tracer)
	}
	url := n.opt.Site.Trace.OTLP
	if url == "" {
		return s
	}
	host, _ := os.Hostname() // after an error it is empty
	var err error
	s.tracer, err = telemetry.New(telemetry.Settings{
		URL: url, Version: version.String(), Log: n.log, Last: lastSpans,
		Attributes: telemetry.Attributes("host.name", host, "process.pid", os.Getpid(), "impi.job", n.name(), "impi.site", n.opt.Site.Name),
	})
	if err != nil {
		n.log.Warn("the job is not traced", "error", err)
		return spans{}
	}
	s.job = s.tracer.BeginJob("job "+n.name(), telemetry.Attributes("impi.sites", len(n.opt.Job.Sites))...)
	name := "node " + n.opt.Site.Name
	if c := n.opt.Cluster; c != nil {
		name += " " + c.Hosts[c.Self].String()
	}
	s.node = s.tracer.Begin(name, nil, telemetry.Attributes("impi.client", n.opt.Site.Client, "impi.procs", n.opt.Site.Procs())...)
	if log, ok := n.log.(hclog.InterceptLogger); ok {
		log.RegisterSink(&telemetry.Faults{Tracer: s.tracer, Of: s.node, Tells: func(level hclog.Level, text string) bool {
			return level >= hclog.Info && links.LogLine{Level: level.String(), Text: text}.IsEvent()
		}})
	}
	return s
}

// spansOfWorld begins the spans of a node of a spawned world, in the trace of the job that has
// spawned it: they are parts of the span of that spawn, which may be another site's.
func spansOfWorld(n *node, t *telemetry.Tracer) spans {
	world := n.spawnedWorld()
	name := "world " + world + " at " + n.opt.Site.Name
	if c := n.opt.Cluster; c != nil {
		name += " " + c.Hosts[c.Self].String()
	}
	var hosts []string // with as many procs on each as they report
	for _, h := range n.opt.Site.Hosts {
		hosts = append(hosts, fmt.Sprintf("%s:%d", h.Address, h.Procs))
	}
	s := spans{tracer: t, node: t.Begin(name, nil, telemetry.Attributes("impi.world", world, "impi.procs", n.opt.Site.Procs(), "impi.hosts", strings.Join(hosts, " "))...)}
	s.node.SetParentKey(spawnKey(world))
	return s
}

// spawnKey is what the ID of a spawn's span is derived from.
func spawnKey(world string) string { return "spawn " + world }

func (s *spans) step(name string, f func() error) error {
	x := s.tracer.Begin(name, s.node)
	err := f()
	x.End(err)
	return err
}

// met identifies the job, once the sites have met. What sites of ours share is random, and so is
// its hash; with foreign sites and without a key they share nothing, and the job is identified by
// its hosts and procs.
func (s *spans) met(job *startup.Job) {
	if s.tracer == nil {
		return
	}
	b := append([]byte(nil), job.Secret[:]...)
	for _, h := range job.Hosts {
		b = fmt.Appendf(b, "%x %d\n", h.Address, h.Port)
	}
	for _, p := range job.Procs.All() {
		b = fmt.Appendf(b, "%x %d\n", p.ID.Host, p.ID.PID)
	}
	s.tracer.Identify(b)
	s.job.Set(telemetry.Attributes("impi.procs", job.Procs.Len())...) // a spawned world has a nil span
}

func (s *spans) spawning(by *procs.Proc, commands []spawn.Command) func(world string, r *spawn.Refusal) {
	x := s.tracer.Begin("spawn", s.node, telemetry.Attributes("impi.rank", int(by.Rank()))...)
	total := 0
	for i, c := range commands {
		total += c.Procs
		if i == 0 {
			x.Set(telemetry.Attributes("impi.command", c.Path, "impi.commands", len(commands))...)
		}
	}
	x.Set(telemetry.Attributes("impi.procs", total)...)
	return func(world string, r *spawn.Refusal) {
		x.Set(telemetry.Attributes("impi.world", world)...)
		if world != "" {
			x.SetKey(spawnKey(world))
		}
		if r != nil {
			x.End(errors.New(r.Reason))
			return
		}
		x.End(nil)
	}
}

var _ spawner.Spawning = (&spans{}).spawning

// over ends all spans and sends them, for at most lastSpans.
func (s *spans) over(n *node, o ending.Outcome) {
	if s.tracer == nil {
		return
	}
	var err error
	if o.Failure != nil {
		err = errors.New(o.Failure.Text)
	}
	s.node.End(err)
	if n.opt.spawned != nil {
		return // its tracer is that of the site's own node
	}
	if isFirst(n) {
		s.job.End(err)
	}
	s.tracer.Close()
}

// isFirst reports whether this node speaks for the job: it is the head of the first of our sites.
func isFirst(n *node) bool {
	if n.spare != nil {
		return false
	}
	if !n.cluster.IsHead() || n.job == nil {
		return n.cluster.IsHead()
	}
	for client, x := range n.job.Clients {
		if x.Own {
			return client == int(n.job.Self)
		}
	}
	return true
}
