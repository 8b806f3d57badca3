package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/openimpi/impi/plugins/sdk/proto"
	"github.com/openimpi/impi/plugins/sdk/proto/handover"
)

// node is the simplest node that there can be: a plugin's process with its three
// ways, and no supervision. Cases do with it what a node does, and what none should,
// which go-plugin and plugins/host do not let a node do.
type node struct {
	cmd    *exec.Cmd
	fds    *handover.Conn
	out    *lines // standard output, the handshake included
	err    *lines
	shake  handshake
	conn   *grpc.ClientConn
	rpc    proto.TransportClient
	keys   atomic.Uint64
	speaks []uint32      // protocol versions, from Info
	told   chan struct{} // closed when its output has ended; nil if it serves none
	exited chan struct{}
	status error // of Wait, valid when exited is closed
}

type nodeOptions struct {
	dir      string // for its control socket, private
	level    string // of its log; empty: info
	versions string // of the protocol; empty: the current one
	cookie   string // empty: the right one
	absent   bool   // no cookie at all
	mute     bool   // do not wait for a handshake
	frozen   bool   // stop the process for a second as soon as it has begun
}

func (o *nodeOptions) complete() {
	o.level = cmp.Or(o.level, "info")
	if o.versions == "" {
		o.versions = offered(0)
	}
	o.cookie = cmp.Or(o.cookie, proto.CookieValue)
}

// offered lists the protocol versions of a node that is ahead of this one by newer versions.
func offered(newer int) string {
	var words []string
	for _, v := range proto.Versions() {
		words = append(words, fmt.Sprint(v+newer))
	}
	return strings.Join(words, ",")
}

func startNode(ctx context.Context, s Subject, o nodeOptions) (*node, error) {
	o.complete()
	n := &node{out: newLines(), err: newLines(), exited: make(chan struct{})}
	if err := n.spawn(s, o); err != nil {
		return nil, err
	}
	if o.frozen {
		n.freeze(time.Second)
	}
	if o.mute {
		return n, nil
	}
	err := n.meet(ctx)
	if err != nil {
		n.end()
		return nil, n.explain(err)
	}
	return n, nil
}

func (n *node) explain(err error) error {
	if words := n.err.all(); len(words) > 0 {
		return fmt.Errorf("%w; it wrote: %s", err, strings.Join(words[max(0, len(words)-5):], " | "))
	}
	return err
}

func (n *node) spawn(s Subject, o nodeOptions) error {
	path := cmp.Or(s.Path, "/proc/self/exe")
	fds, theirs, err := handover.Pair()
	if err != nil {
		return err
	}
	defer theirs.Close()
	n.fds = fds
	n.cmd = &exec.Cmd{
		Path: path, Args: []string{path}, Env: environment(s, o), Stdout: n.out, Stderr: n.err,
		ExtraFiles: []*os.File{theirs}, SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
		WaitDelay: time.Second,
	}
	if err := n.cmd.Start(); err != nil {
		fds.Close()
		return fmt.Errorf("it cannot be executed: %w", err)
	}
	go func() {
		n.status = n.cmd.Wait()
		n.out.close()
		n.err.close()
		close(n.exited)
	}()
	return nil
}

func environment(s Subject, o nodeOptions) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "USER", "LANG", "TMPDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	env = append(env, s.Env...)
	if o.absent {
		return env
	}
	env = append(env, proto.CookieKey+"="+o.cookie, "PLUGIN_PROTOCOL_VERSIONS="+o.versions, "PLUGIN_UNIX_SOCKET_DIR="+o.dir,
		"PLUGIN_MIN_PORT=10000", "PLUGIN_MAX_PORT=25000", proto.EnvLogLevel+"="+o.level)
	if s.Path == "" {
		env = append(env, proto.EnvBuiltin+"="+s.Name)
	}
	return env
}

func (n *node) freeze(d time.Duration) {
	_ = n.cmd.Process.Signal(syscall.SIGSTOP) // it may have ended: the case notices that
	time.Sleep(d)
	_ = n.cmd.Process.Signal(syscall.SIGCONT)
}

func (n *node) stop() (goOn func()) {
	_ = n.cmd.Process.Signal(syscall.SIGSTOP) // it may have ended: the case notices that
	return func() { _ = n.cmd.Process.Signal(syscall.SIGCONT) }
}

// meet reads the handshake and makes the control connection.
func (n *node) meet(ctx context.Context) error {
	line, err := n.out.first(ctx)
	if err != nil {
		return fmt.Errorf("no handshake: %w", err)
	}
	if n.shake, err = parseHandshake(line); err != nil {
		return err
	}
	n.conn, err = grpc.NewClient("unix:"+n.shake.address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(proto.MaxMessage)), grpc.WithIdleTimeout(0))
	if err != nil {
		return err
	}
	n.rpc = proto.NewTransportClient(n.conn)
	info, err := n.rpc.Info(ctx, &proto.InfoRequest{Call: n.call(ctx)})
	if err != nil {
		return fmt.Errorf("it shook hands but does not answer Info: %w", err)
	}
	n.speaks = info.GetProtocols()
	n.followStdio()
	_ = os.Remove(n.shake.address) // as a node does: after connecting, the name is not needed
	return nil
}

// followStdio collects what a plugin of go-plugin prints after its handshake: it comes
// in the control connection. Others do not serve that.
func (n *node) followStdio() {
	stream, err := n.conn.NewStream(context.Background(), &grpc.StreamDesc{ServerStreams: true}, "/plugin.GRPCStdio/StreamStdio")
	if err == nil {
		err = errors.Join(stream.SendMsg(&emptypb.Empty{}), stream.CloseSend())
	}
	if err != nil {
		return
	}
	n.told = make(chan struct{})
	go func() {
		defer close(n.told)
		// go-plugin's StdioData has a number and bytes in the same places.
		var data proto.Frame
		for stream.RecvMsg(&data) == nil {
			_, _ = n.err.Write(data.GetData())
		}
	}()
}

// settle waits until the process has passed on what it has written. Goroutines of
// go-plugin carry that to the control connection, and what they hold is lost when the
// process ends: so it is let run until all of its threads sleep.
func (n *node) settle() {
	pid := strconv.Itoa(n.cmd.Process.Pid)
	until := time.Now().Add(patience)
	for asleep := 0; asleep < 3 && time.Now().Before(until); {
		time.Sleep(10 * time.Millisecond)
		if asleep++; awake(pid) {
			asleep = 0
		}
	}
}

// ended waits for the last of what the process printed: the connection that carries it
// ends after the process.
func (n *node) ended(within time.Duration) {
	if n.told == nil {
		return
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-n.told:
	case <-timer.C:
	}
}

func (n *node) call(ctx context.Context) *proto.Call {
	left := time.Minute
	if at, ok := ctx.Deadline(); ok {
		left = max(time.Until(at), time.Millisecond)
	}
	return &proto.Call{Key: fmt.Sprint(n.keys.Add(1)), TimeoutMs: uint32(left.Milliseconds() + 1)}
}

func (n *node) request() *proto.Call {
	return &proto.Call{Key: fmt.Sprint(n.keys.Add(1)), TimeoutMs: uint32(patience.Milliseconds())}
}

func (n *node) end() {
	if n.conn != nil {
		_ = n.conn.Close()
	}
	_ = n.cmd.Process.Kill()
	<-n.exited
	n.fds.Close()
}

func (n *node) gone(within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-n.exited:
	case <-timer.C:
	}
	select {
	case <-n.exited:
		return true
	default:
		return false
	}
}

type handshake struct {
	core, version, network, address, protocol string
}

var errHandshake = errors.New("the first line of its standard output is no handshake")

func parseHandshake(line string) (handshake, error) {
	parts := strings.Split(line, "|")
	if len(parts) < 5 {
		return handshake{}, fmt.Errorf("%w: %.80q", errHandshake, line)
	}
	h := handshake{parts[0], parts[1], parts[2], parts[3], strings.TrimSpace(parts[4])}
	switch {
	case h.core != "1":
		return h, fmt.Errorf("%w: its first field is %.20q, not 1", errHandshake, h.core)
	case h.network != "unix":
		return h, fmt.Errorf("%w: its third field is %.20q, not unix", errHandshake, h.network)
	case h.protocol != "grpc":
		return h, fmt.Errorf("%w: its fifth field is %.20q, not grpc", errHandshake, h.protocol)
	}
	return h, nil
}
