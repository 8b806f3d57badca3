package conformance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"

	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/plugins/sdk/proto"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// Kind is the half of the verdict that a rule belongs to.
type Kind string

// The kinds.
const (
	Correct Kind = "correct" // correct behaviour
	Robust  Kind = "robust"  // also under faults
)

// Case is one rule and the way to check it.
type Case struct {
	ID   string // as in "P-START-01"
	Name string // as in "by-hand"
	Rule string // what must hold, in a sentence
	Kind Kind
	Slow bool // not part of a quick run
	run  func(*env)
}

type env struct {
	transporttest.T
	c       Case
	s       Subject
	mtls    error                // what is wrong with AutoMTLS
	plane   transports.DataPlane // empty for cases that need no link's bytes
	quick   bool
	wait    time.Duration // limit of every wait of the case
	workDir string
	crashes *crashes
	started time.Duration // how long the slowest start by host took
	speed   *Speed        // that P-SPEED-01 has found
}

// Fatalf fails the case. The message has its number and its rule, if it is one.
func (e *env) Fatalf(format string, args ...any) {
	if e.c.ID == "" {
		e.T.Fatalf(format, args...)
	}
	e.T.Fatalf("%s: %s (the rule: %s)", e.c.ID, fmt.Sprintf(format, args...), e.c.Rule)
}

func (e *env) must(err error) {
	if err != nil {
		e.Fatalf("%v", err)
	}
}

// patience is how long cases wait, as long as none has hung.
const patience = 30 * time.Second

func (e *env) context() context.Context { return e.contextOf(e.wait) }

func (e *env) contextOf(limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	e.Cleanup(cancel)
	e.crashes.endWith(cancel)
	return ctx
}

// dir makes a private directory with a short name.
func (e *env) dir() string {
	d, err := os.MkdirTemp(e.workDir, "d")
	e.must(err)
	return d
}

func (e *env) node(o nodeOptions) *node {
	if o.dir == "" {
		o.dir = e.dir()
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	n, err := startNode(ctx, e.s, o)
	e.must(err)
	e.Cleanup(n.end)
	e.Cleanup(func() { e.crashes.report(n) })
	return n
}

func ask[Q, A any](e *env, method func(context.Context, *Q, ...grpc.CallOption) (*A, error), q *Q) *A {
	ctx, cancel := context.WithTimeout(context.Background(), e.wait)
	defer cancel()
	answer, err := method(ctx, q)
	e.must(err)
	return answer
}

// configured is node, with the plugin's settings applied.
func (e *env) configured(o nodeOptions) *node {
	n := e.node(o)
	answer := ask(e, n.rpc.Schema, &proto.SchemaRequest{Call: n.request()})
	full, err := host.Complete(proto.ToSchema(answer.GetSettings()), e.s.Settings)
	e.must(err)
	values, err := proto.FromSettings(full)
	e.must(err)
	done := ask(e, n.rpc.Configure, &proto.ConfigureRequest{Call: n.request(), Settings: values})
	if done.GetError() != nil {
		e.Fatalf("Configure with its defaults: %s", done.GetError().GetReason())
	}
	return n
}

// host starts the plugin under the node's own client, with the case's data plane.
func (e *env) host() *host.Plugin {
	c := e.s.config(e.plane)
	c.OnStatus = e.crashes.watch()
	begun := time.Now()
	p, err := host.Start(e.context(), c)
	e.must(err)
	e.started = max(e.started, time.Since(begun))
	e.Cleanup(func() { e.crashes.settle(p); _ = p.Close() })
	return p
}

func (e *env) at() transports.ListenSpec {
	return transports.ListenSpec{Host: e.s.Host, Dir: e.dir(), Name: "conform"}
}

func (e *env) listenRequest(call *proto.Call) *proto.ListenRequest {
	at := e.at()
	return &proto.ListenRequest{Call: call, Host: at.Host, Dir: at.Dir, Name: at.Name}
}

func (e *env) listen(n *node) (address string) {
	answer := ask(e, n.rpc.Listen, e.listenRequest(n.request()))
	if answer.GetError() != nil {
		e.Fatalf("Listen: %s (%s)", answer.GetError().GetReason(), answer.GetError().GetCode())
	}
	return answer.GetAddress()
}

func (e *env) dial(n *node, address string) *proto.DialResponse {
	answer := ask(e, n.rpc.Dial, &proto.DialRequest{Call: n.request(), Address: address})
	return answer
}

// dialBriefly is dial for a link that the other side may not take: the plugin has time to say so
// before the case has none left. number is the dial's, for the error.
func (e *env) dialBriefly(n *node, address string, number int) *proto.DialResponse {
	call := n.request()
	call.TimeoutMs = uint32((patience / 10).Milliseconds())
	ctx, cancel := context.WithTimeout(context.Background(), e.wait)
	defer cancel()
	answer, err := n.rpc.Dial(ctx, &proto.DialRequest{Call: call, Address: address})
	if err != nil {
		e.Fatalf("dial %d: %v", number, err)
	}
	return answer
}

func filesIn(dir string) (names []string) {
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return nil
	})
	return names
}
