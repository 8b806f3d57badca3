package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/openimpi/impi/plugins/sdk/proto"
	"github.com/openimpi/impi/plugins/sdk/proto/handover"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// instance is one process of a plugin, with its control connection and its descriptor
// channel. It is started once, like a go-plugin client.
type instance struct {
	cfg     *Config
	path    string
	digest  string
	log     hclog.Logger
	proc    *process
	client  *plugin.Client
	conn    *grpc.ClientConn
	rpc     proto.TransportClient
	fds     *handover.Conn
	started time.Time
	keys    atomic.Uint64

	info     transports.Info
	sdk      string
	schema   []transports.Setting
	protocol int    // version of the protocol that both use
	newest   int    // highest version that the plugin speaks
	problem  string // from its Health at the start

	ctx    context.Context // ends with the instance
	cancel context.CancelFunc
	mu     sync.Mutex
	ending bool
	work   sync.WaitGroup // no Add once the instance is ending
	dead   chan struct{}  // closed when the instance cannot be used any more
	err    error          // the reason; valid when dead is closed
	gone   chan struct{}  // closed when process and goroutines have ended

	handovers handovers
	listeners listenerIndex
	pipes     pipes
	passing   atomic.Bool // bytes of links have passed through it
}

func newInstance(cfg *Config, exe *executable, proc *process, client *plugin.Client, conn *grpc.ClientConn, fds *handover.Conn) *instance {
	i := &instance{
		cfg: cfg, path: exe.path, digest: exe.digest, log: cfg.Logger, proc: proc, client: client, conn: conn,
		rpc: proto.NewTransportClient(conn), fds: fds, started: time.Now(),
		dead: make(chan struct{}), gone: make(chan struct{}),
	}
	i.ctx, i.cancel = context.WithCancel(context.Background())
	i.spawn(i.receive)
	return i
}

// spawn runs f on a goroutine for which the end of the instance waits. It returns false if
// the instance is ending.
func (i *instance) spawn(f func()) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ending {
		return false
	}
	i.work.Go(f)
	return true
}

// aside runs f, a call whose result does not matter, without blocking.
func (i *instance) aside(f func(ctx context.Context)) {
	i.spawn(func() {
		ctx, cancel := context.WithTimeout(i.ctx, settle)
		defer cancel()
		f(ctx)
	})
}

func (i *instance) introduce(ctx context.Context) error {
	answer, err := i.rpc.Info(ctx, &proto.InfoRequest{Call: i.call(ctx)})
	if err != nil {
		return i.broken(ctx, "Info", err)
	}
	i.info = transports.Info{Name: answer.GetName(), Version: answer.GetVersion(), Vendor: answer.GetVendor()}
	i.sdk = answer.GetSdk()
	if err := i.agree(i.client.NegotiatedVersion(), answer.GetProtocols()); err != nil {
		return err
	}
	if i.info.Name != i.cfg.Name {
		return &Error{Plugin: i.cfg.Name, Path: i.path, Kind: ErrName,
			Problem: fmt.Sprintf("calls its transport %q, the config %q", i.info.Name, i.cfg.Name),
			Remedy:  fmt.Sprintf("write transport %q, or give another plugin", i.info.Name)}
	}
	schema, err := i.rpc.Schema(ctx, &proto.SchemaRequest{Call: i.call(ctx)})
	if err != nil {
		return i.broken(ctx, "Schema", err)
	}
	i.schema = proto.ToSchema(schema.GetSettings())
	return nil
}

func (i *instance) hung(err error) error {
	if _, ok := errors.AsType[*Error](err); !errors.Is(err, context.DeadlineExceeded) || ok {
		return err
	}
	return &Error{Plugin: i.cfg.Name, Path: i.path, Kind: ErrHung, Cause: err,
		Problem: "does not answer: " + err.Error(), Remedy: "see its log; report it to its vendor"}
}

// defaultTimeout is for calls whose context has no deadline.
const defaultTimeout = time.Minute

// call makes the key and the timeout of a new request.
func (i *instance) call(ctx context.Context) *proto.Call {
	left := defaultTimeout
	if at, ok := ctx.Deadline(); ok {
		left = min(max(time.Until(at), time.Millisecond), time.Hour)
	}
	return &proto.Call{
		Key:       fmt.Sprintf("%d", i.keys.Add(1)),
		TimeoutMs: uint32((left + time.Millisecond - 1) / time.Millisecond),
	}
}

// run starts the goroutines of a healthy instance. felt is called with each change of the
// plugin's health.
func (i *instance) run(felt func(problem string)) {
	i.spawn(i.followEvents)
	if i.cfg.Heartbeat > 0 {
		i.spawn(func() { i.beat(i.cfg.Heartbeat, felt) })
	}
}

func (i *instance) beat(every time.Duration, felt func(problem string)) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-i.ctx.Done():
			return
		case <-ticker.C:
			i.check(every)
			ctx, cancel := context.WithTimeout(i.ctx, every)
			if problem, err := i.health(ctx); err == nil {
				felt(problem)
			}
			cancel()
		}
	}
}

// check kills a plugin that does not answer within the given time.
func (i *instance) check(within time.Duration) {
	ctx, cancel := context.WithTimeout(i.ctx, within)
	defer cancel()
	_, err := grpc_health_v1.NewHealthClient(i.conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: plugin.GRPCServiceName})
	if status.Code(err) == codes.DeadlineExceeded && i.ctx.Err() == nil {
		i.stop(&Error{Plugin: i.cfg.Name, Path: i.path, Kind: ErrHung,
			Problem: fmt.Sprintf("did not answer a health check within %v and is killed", within),
			Remedy:  "it is started again when needed; links whose bytes it passed on are broken, others go on"}, 0)
	}
}

// receive reads the descriptor channel until it ends, which means that the plugin has
// ended.
func (i *instance) receive() {
	for {
		r, err := i.fds.Receive()
		switch {
		case err == nil:
			i.deliver(r)
		case errors.Is(err, handover.ErrTruncated) && !errors.Is(err, handover.ErrRecord):
			i.log.Warn("descriptor lost", "link", r.Link, "error", err)
			i.handovers.serve(r.Link, parcel{err: err})
		case errors.Is(err, handover.ErrRecord):
			i.stop(i.violation(err), 0)
			return
		case errors.Is(err, io.EOF):
			i.proc.finished(lateOutput)
			i.stop(i.crash(), 0)
			return
		default: // closed by stop
			i.stop(i.crash(), 0)
			return
		}
	}
}

func (i *instance) crash() error {
	problem := i.proc.ending()
	if !i.proc.ended(0) {
		problem = "closed the descriptor channel and is killed"
	} else if words := i.proc.said.panicLine(); words != "" {
		problem += ": " + words
	}
	return &Error{Plugin: i.cfg.Name, Path: i.path, Kind: ErrCrashed, Problem: problem, Output: i.proc.said.String(),
		Remedy: "it is started again when needed; links whose bytes it passed on are broken, others go on"}
}

func (i *instance) violation(cause error) error {
	return &Error{Plugin: i.cfg.Name, Path: i.path, Kind: ErrProtocol, Cause: cause,
		Problem: "broke the protocol and is killed: " + cause.Error(), Remedy: "report it to its vendor"}
}

// verdict is how long broken waits for the reason of a lost connection.
const verdict = 5 * time.Second

// broken makes the error of a call that failed in the control connection, not in the
// transport. If the connection was lost it waits for the reason.
func (i *instance) broken(ctx context.Context, call string, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded), status.Code(err) == codes.DeadlineExceeded: // gRPC's timeout may end before the context's
		return fmt.Errorf("no answer to %s, the control connection is %v: %w", call, i.conn.GetState(), context.DeadlineExceeded)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if status.Code(err) == codes.Unavailable || status.Code(err) == codes.Canceled {
		timer := time.NewTimer(verdict)
		defer timer.Stop()
		select {
		case <-i.dead:
			return i.err
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			i.stop(i.violation(fmt.Errorf("control connection lost: %w", err)), 0)
			return i.err
		}
	}
	return &Error{Plugin: i.cfg.Name, Path: i.path, Kind: ErrProtocol, Cause: err,
		Problem: fmt.Sprintf("%s failed: %v", call, err), Remedy: "report it to its vendor"}
}

// stop ends the instance for a reason; only the first call counts. The process has the time
// patience to end by itself, which it does when the descriptor channel ends; then it is
// killed.
func (i *instance) stop(reason error, patience time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ending {
		return
	}
	i.ending = true
	i.err = reason
	close(i.dead)
	i.cancel()
	i.fds.Close()
	go func() {
		defer close(i.gone)
		if patience > 0 {
			i.proc.ended(patience)
		}
		_ = i.proc.Kill(context.Background())
		<-i.proc.exited
		// Not earlier: it would wait for ever for a plugin that hangs, and two seconds for
		// one that is slow to end.
		i.client.Kill()
		i.work.Wait()
	}()
}

func (i *instance) useless() bool {
	select {
	case <-i.dead:
		return true
	default:
		return false
	}
}
