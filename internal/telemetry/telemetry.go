// Package telemetry tells an OpenTelemetry collector how a job goes, by OTLP over HTTP: a trace of
// the steps of all its nodes, of spawns and of faults.
//
// Nodes agree on the trace without a message: its ID, and that of the span of the whole job, follow
// from what identifies the job, which all of them know once the sites have met. Until then spans
// are kept.
package telemetry

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const (
	mostSpans   = 2048            // spans of a node, kept before the sites have met, and waiting to be sent
	mostText    = 500             // maximum bytes of a text
	sendPause   = time.Second     // wait before ended spans are sent, together
	sendLimit   = 5 * time.Second // maximum time of one request
	firstRetry  = 500 * time.Millisecond
	longestWait = 10 * time.Second // maximum time for which a request is repeated
)

// Settings tell where spans are sent, and which process they belong to.
type Settings struct {
	URL        string // URL of the collector; without a path it is /v1/traces
	Version    string
	Attributes []attribute.KeyValue // attributes of the process
	Log        hclog.Logger

	Last time.Duration // maximum time in which Close sends what is left
}

// Tracer makes the spans of a node. A nil Tracer makes nil Spans, and does nothing.
type Tracer struct {
	log      hclog.Logger
	last     time.Duration // Settings.Last
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	warn     sync.Once
	life     context.Context // ends with the Tracer
	end      context.CancelFunc

	mu      sync.Mutex
	trace   trace.TraceID // zero before Identify
	job     trace.SpanID  // ID of the span of the whole job
	waiting []*Span       // spans that ended before Identify
	left    int           // spans left out, since there were too many
}

// Span is a step of a node, or something that has happened. Its methods may be called by one
// goroutine at a time, and do nothing if it is nil.
type Span struct {
	t          *Tracer
	name       string
	id         trace.SpanID
	key        string // the ID is derived from it; empty: the ID is random
	parent     *Span  // nil: the span of the whole job
	parentKey  string // key of a parent that another node may have
	whole      bool   // this is the span of the whole job
	begun, end time.Time
	attributes []attribute.KeyValue
	failed     string
}

// New begins a Tracer. Nothing is sent, and no connection is made, before a span has ended.
func New(s Settings) (*Tracer, error) {
	exporter, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(withPath(s.URL)), otlptracehttp.WithTimeout(sendLimit),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: firstRetry, MaxInterval: sendLimit, MaxElapsedTime: longestWait}))
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	t := &Tracer{log: s.Log, last: s.Last}
	t.life, t.end = context.WithCancel(context.Background())
	attributes := append([]attribute.KeyValue{attribute.String("service.name", "impi"), attribute.String("service.version", s.Version)}, s.Attributes...)
	t.provider = sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(&telling{exporter, t}, sdktrace.WithBatchTimeout(sendPause), sdktrace.WithMaxQueueSize(mostSpans), sdktrace.WithExportTimeout(longestWait)),
		sdktrace.WithIDGenerator(chosen{}), sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithResource(resource.NewSchemaless(attributes...)),
	)
	t.tracer = t.provider.Tracer("github.com/openimpi/impi", trace.WithInstrumentationVersion(s.Version))
	return t, nil
}

// withPath adds the usual path to a URL that has none.
func withPath(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	if _, path, _ := strings.Cut(rest, "/"); path == "" {
		return strings.TrimSuffix(url, "/") + "/v1/traces"
	}
	return url
}

// telling is an exporter that tells the operator of its errors and ends with its Tracer.
type telling struct {
	sdktrace.SpanExporter
	t *Tracer
}

// ExportSpans sends spans until the Tracer's time is over. It returns no error, which the library
// would log: the Tracer reports it.
func (x *telling) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(x.t.life, cancel)()
	if err := x.SpanExporter.ExportSpans(ctx, spans); err != nil {
		x.t.lost(err)
	}
	return nil
}

// lost tells the operator once that spans do not arrive.
func (t *Tracer) lost(err error) {
	t.warn.Do(func() {
		t.log.Warn("the trace of the job is incomplete: the collector does not take it; the job goes on", "error", text(err.Error()))
	})
}

// Begin begins a span as a part of another one, or, for nil, of the whole job.
func (t *Tracer) Begin(name string, parent *Span, attributes ...attribute.KeyValue) *Span {
	if t == nil {
		return nil
	}
	s := &Span{t: t, name: text(name), parent: parent, begun: time.Now(), attributes: attributes}
	_, _ = rand.Read(s.id[:]) // never fails
	return s
}

// BeginJob begins the span of the whole job, which one node ends.
func (t *Tracer) BeginJob(name string, attributes ...attribute.KeyValue) *Span {
	s := t.Begin(name, nil, attributes...)
	if s != nil {
		s.whole = true
	}
	return s
}

// RecordEvent creates a span of no length.
func (t *Tracer) RecordEvent(what string, parent *Span, failed bool, attributes ...attribute.KeyValue) {
	s := t.Begin(what, parent, attributes...)
	if s == nil {
		return
	}
	if failed {
		s.failed = s.name
	}
	s.finish(s.begun)
}

// SetKey gives a span the ID that follows from a key, so that spans of other nodes of the job can
// be parts of it; see SetParentKey.
func (s *Span) SetKey(key string) {
	if s != nil {
		s.key = key
	}
}

// SetParentKey makes the span a part of the span that has, or will have, the ID of a key.
func (s *Span) SetParentKey(key string) {
	if s != nil {
		s.parentKey = key
	}
}

// spanID returns the ID of the span with a key. The trace must be identified.
func (t *Tracer) spanID(key string) (id trace.SpanID) {
	sum := sha256.Sum256(fmt.Appendf(nil, "impi span %x %s", t.trace, key))
	copy(id[:], sum[:])
	return id
}

// idOf returns the ID of a span. The trace must be identified.
func (t *Tracer) idOf(s *Span) trace.SpanID {
	switch {
	case s.whole:
		return t.job
	case s.key != "":
		return t.spanID(s.key)
	}
	return s.id
}

// Set adds attributes to a span that has not ended. s may be nil, where there is no tracing.
func (s *Span) Set(attributes ...attribute.KeyValue) {
	if s != nil {
		s.attributes = append(s.attributes, attributes...)
	}
}

// End ends a span, which has failed if err is not nil. It has to be called once.
func (s *Span) End(err error) {
	if s == nil {
		return
	}
	if err != nil {
		s.failed = text(err.Error())
	}
	s.finish(time.Now())
}

func (s *Span) finish(at time.Time) {
	t := s.t
	s.end = at
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.trace.IsValid():
		t.emit(s)
	case len(t.waiting) < mostSpans:
		t.waiting = append(t.waiting, s)
	default:
		t.left++
	}
}

// Identify sets what identifies the job. job is secret or has parts that cannot be guessed: only a
// hash of it is sent.
func (t *Tracer) Identify(job []byte) {
	if t == nil {
		return
	}
	sum := sha256.Sum256(append([]byte("impi trace "), job...))
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.trace.IsValid() {
		return
	}
	copy(t.trace[:], sum[:])
	copy(t.job[:], sum[len(t.trace):])
	for _, s := range t.waiting {
		t.emit(s)
	}
	t.waiting = nil
}

// emit gives an ended span to the SDK, which never blocks: it drops what its queue has no room for.
func (t *Tracer) emit(s *Span) {
	ids := chosenIDs{t.trace, t.idOf(s)}
	ctx := context.WithValue(context.Background(), chosen{}, ids)
	if !s.whole {
		parent := t.job
		switch {
		case s.parentKey != "":
			parent = t.spanID(s.parentKey)
		case s.parent != nil:
			parent = t.idOf(s.parent)
		}
		ctx = trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: t.trace, SpanID: parent, TraceFlags: trace.FlagsSampled}))
	}
	_, x := t.tracer.Start(ctx, s.name, trace.WithTimestamp(s.begun), trace.WithAttributes(s.attributes...))
	if s.failed != "" {
		x.SetStatus(codes.Error, s.failed)
	}
	x.End(trace.WithTimestamp(s.end))
}

// Close sends the spans that have ended, for at most Settings.Last. Of a job whose sites have not
// met, each node has a trace of its own.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	var own [32]byte
	_, _ = rand.Read(own[:]) // never fails
	t.Identify(own[:])
	if t.left > 0 {
		t.log.Warn("the trace of the job is incomplete: too much happened before its sites had met", "left_out", t.left)
	}
	ctx, cancel := context.WithTimeout(context.Background(), t.last)
	defer cancel()
	defer t.end()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.lost(err)
	}
}

// chosen generates the IDs of a span: those that its context says.
type chosen struct{}

type chosenIDs struct {
	trace trace.TraceID
	span  trace.SpanID
}

// NewIDs returns the IDs of a trace's first span.
func (chosen) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	ids, _ := ctx.Value(chosen{}).(chosenIDs)
	return ids.trace, ids.span
}

// NewSpanID returns the ID that the context has for another span of the trace.
func (chosen) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	ids, _ := ctx.Value(chosen{}).(chosenIDs)
	return ids.span
}

func text(s string) string { return strings.ToValidUTF8(s[:min(len(s), mostText)], "") }

// Attributes returns attributes of names and values, which are texts and whole numbers.
func Attributes(pairs ...any) (list []attribute.KeyValue) {
	for i := 0; i+1 < len(pairs); i += 2 {
		key := pairs[i].(string)
		if n, ok := pairs[i+1].(int); ok {
			list = append(list, attribute.Int(key, n))
		} else {
			list = append(list, attribute.String(key, text(fmt.Sprint(pairs[i+1]))))
		}
	}
	return list
}
