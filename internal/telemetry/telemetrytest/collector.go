// Package telemetrytest has an OpenTelemetry collector for tests.
package telemetrytest

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// patience is longer than spans take to arrive, even on a machine with other work.
const patience = time.Minute

// Collector receives spans by OTLP over HTTP.
type Collector struct {
	URL string

	mu    sync.Mutex
	spans []Span
	news  chan struct{} // closed when more spans have come
}

// Span is a span as it was received. IDs are in hex; Parent is empty for the first of a trace.
type Span struct {
	Trace, ID, Parent, Name string
	Begun, Ended            uint64            // ns
	Failed                  string            // message of its error status; empty: none
	Attributes              map[string]string // numbers in decimal digits
	Resource                map[string]string
}

// New starts a collector, which runs until the end of the test.
func New(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{news: make(chan struct{})}
	s := httptest.NewServer(http.HandlerFunc(c.take))
	t.Cleanup(s.Close)
	c.URL = s.URL
	return c
}

func (c *Collector) take(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	var q collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(b, &q)
	}
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" {
		http.Error(w, "no OTLP", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range q.GetResourceSpans() {
		resource := attributes(of.GetResource().GetAttributes())
		for _, scope := range of.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, spanOf(s, resource))
			}
		}
	}
	close(c.news)
	c.news = make(chan struct{})
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func spanOf(s *trace.Span, resource map[string]string) Span {
	x := Span{
		Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()), Name: s.GetName(),
		Begun: s.GetStartTimeUnixNano(), Ended: s.GetEndTimeUnixNano(), Attributes: attributes(s.GetAttributes()), Resource: resource,
	}
	if s.GetStatus().GetCode() == trace.Status_STATUS_CODE_ERROR {
		x.Failed = s.GetStatus().GetMessage()
	}
	return x
}

func attributes(list []*common.KeyValue) map[string]string {
	m := make(map[string]string)
	for _, a := range list {
		switch v := a.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			m[a.GetKey()] = v.StringValue
		case *common.AnyValue_IntValue:
			m[a.GetKey()] = strconv.FormatInt(v.IntValue, 10)
		}
	}
	return m
}

// Await returns the spans received so far once wanted returns true for them.
func (c *Collector) Await(t testing.TB, wanted func([]Span) bool) []Span {
	t.Helper()
	late := time.After(patience)
	for {
		c.mu.Lock()
		spans, news := append([]Span(nil), c.spans...), c.news
		c.mu.Unlock()
		if wanted(spans) {
			return spans
		}
		select {
		case <-news:
		case <-late:
			t.Fatalf("these spans have come: %+v", spans)
		}
	}
}

// All returns the spans received so far.
func (c *Collector) All() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}
