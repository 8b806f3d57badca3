package telemetry

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/internal/telemetry/telemetrytest"
	"github.com/openimpi/impi/internal/transcript"
)

func begin(t *testing.T, url, site string) (*Tracer, *transcript.Writer) {
	return beginFor(t, url, site, time.Minute)
}

func beginFor(t *testing.T, url, site string, last time.Duration) (*Tracer, *transcript.Writer) {
	t.Helper()
	log := &transcript.Writer{}
	x, err := New(Settings{URL: url, Version: "1", Log: hclog.New(&hclog.LoggerOptions{Output: log}), Attributes: Attributes("impi.site", site), Last: last})
	if err != nil {
		t.Fatal(err)
	}
	return x, log
}

// TestSitesShareATrace: without a message, by what both know of the job, and also what ended
// before.
func TestSitesShareATrace(t *testing.T) {
	c := telemetrytest.New(t)
	for i, site := range []string{"alpha", "beta"} {
		x, log := begin(t, c.URL, site)
		job := x.BeginJob("job heat")
		node := x.Begin("node", nil, Attributes("impi.client", i)...)
		x.Begin("early", node).End(nil)
		x.Begin("early, of the job", job).End(errors.New("bad\xff luck"))
		x.Identify([]byte("a job"))
		x.Identify([]byte("another one"))
		x.RecordEvent("fault", node, true)
		node.End(nil)
		if i == 0 {
			job.End(nil)
		}
		x.Close()
		if log.String() != "" {
			t.Errorf("%s says %s", site, log)
		}
	}
	spans := c.All()
	roots, nodes := make(map[string]bool), make(map[string]string)
	for _, s := range spans {
		if s.Trace != spans[0].Trace {
			t.Errorf("another trace: %+v", s)
		}
		if s.Ended < s.Begun || s.Resource["service.name"] != "impi" || s.Resource["service.version"] != "1" {
			t.Errorf("%+v", s)
		}
		switch s.Name {
		case "job heat":
			roots[s.ID] = s.Parent == ""
		case "node":
			nodes[s.ID] = s.Resource["impi.site"]
		}
	}
	if len(spans) != 9 || len(roots) != 1 || len(nodes) != 2 {
		t.Fatalf("%+v", spans)
	}
	for _, s := range spans {
		var ok bool
		switch s.Name {
		case "job heat":
			ok = roots[s.ID]
		case "node":
			ok = roots[s.Parent] && s.Attributes["impi.client"] == map[string]string{"alpha": "0", "beta": "1"}[s.Resource["impi.site"]]
		case "early":
			ok = nodes[s.Parent] == s.Resource["impi.site"] && s.Failed == ""
		case "early, of the job":
			ok = roots[s.Parent] && s.Failed == "bad luck"
		case "fault":
			ok = nodes[s.Parent] == s.Resource["impi.site"] && s.Failed == "fault" && s.Begun == s.Ended
		}
		if !ok {
			t.Errorf("%+v", s)
		}
	}
}

// TestNotIdentified: nodes of a job whose sites have not met have a trace each.
func TestNotIdentified(t *testing.T) {
	c := telemetrytest.New(t)
	for range 2 {
		x, _ := begin(t, c.URL, "alpha")
		for range mostSpans + 3 {
			x.Begin("step", nil).End(nil)
		}
		if len(x.waiting) != mostSpans || x.left != 3 {
			t.Errorf("%d spans are kept, %d left out", len(x.waiting), x.left)
		}
		x.waiting = x.waiting[:1]
		x.Close()
	}
	if s := c.All(); len(s) != 2 || s[0].Trace == s[1].Trace || s[0].Parent == "" {
		t.Errorf("%+v", s)
	}
}

// TestCollectorsThatDoNotTake: the job goes on, its end does not wait for long, and the operator is
// told once.
func TestCollectorsThatDoNotTake(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + ln.Addr().String()
	_ = ln.Close()
	over := make(chan struct{})
	mute := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	defer mute.Close()
	defer close(over)
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	for name, url := range map[string]string{"nobody": nobody, "mute": mute.URL, "no collector": other.URL, "another path": other.URL + "/traces"} {
		t.Run(name, func(t *testing.T) {
			x, log := beginFor(t, url, "alpha", time.Second)
			x.Identify([]byte("job"))
			for range 3 * mostSpans {
				x.Begin("step", nil).End(nil) // none of them waits
			}
			x.Close()
			if n := strings.Count(log.String(), "the trace of the job is incomplete: the collector does not take it; the job goes on"); n != 1 {
				t.Errorf("%d warnings: %s", n, log)
			}
		})
	}
}

// TestNil: without a collector nothing is done.
func TestNil(t *testing.T) {
	var x *Tracer
	s := x.Begin("step", x.BeginJob("job"))
	s.Set()
	s.End(errors.New("x"))
	x.RecordEvent("fault", s, true)
	x.Identify(nil)
	x.Close()
}

// TestFaults: lines that tell of faults become spans, with what they say.
func TestFaults(t *testing.T) {
	c := telemetrytest.New(t)
	x, _ := begin(t, c.URL, "alpha")
	log := hclog.NewInterceptLogger(&hclog.LoggerOptions{Output: &transcript.Writer{}})
	log.RegisterSink(&Faults{Tracer: x, Tells: func(level hclog.Level, text string) bool { return level >= hclog.Warn || text == "resumed" }})
	log.Info("nothing special")
	log.Named("plugin").With("site", "alpha").Error("plugin is down", "error", errors.New("killed"), "failures", 2)
	log.Info("resumed")
	for range 2 * mostFaults {
		log.Warn("again and again")
	}
	x.Close()
	spans := c.All()
	if len(spans) != mostFaults {
		t.Fatalf("%d spans", len(spans))
	}
	s, after := spans[0], spans[1]
	if s.Name != "plugin is down" || s.Failed != s.Name || s.Attributes["impi.error"] != "killed" || s.Attributes["impi.failures"] != "2" || s.Attributes["impi.site"] != "alpha" || s.Attributes["log.severity"] != "error" || s.Attributes["log.name"] != "plugin" {
		t.Errorf("%+v", s)
	}
	if after.Name != "resumed" || after.Failed != "" {
		t.Errorf("%+v", after)
	}
}
