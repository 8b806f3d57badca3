package host

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"os/exec"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/openimpi/impi/plugins/sdk/proto"
	"github.com/openimpi/impi/plugins/sdk/proto/handover"
	"github.com/openimpi/impi/plugins/sdk/support/failfast"
)

// launch starts a process, makes the handshake and calls Info and Schema. The context
// bounds all of it.
func launch(ctx context.Context, cfg *Config, runDir string) (*instance, error) {
	exe, err := verify(cfg)
	if err != nil {
		return nil, err
	}
	defer exe.file.Close()
	ours, theirs, err := handover.Pair()
	if err != nil {
		return nil, &Error{Plugin: cfg.Name, Path: exe.path, Kind: ErrExec, Problem: err.Error(), Cause: err,
			Remedy: "raise the limit of open files (ulimit -n)"}
	}
	defer theirs.Close()

	var proc atomic.Pointer[process]
	var made atomic.Pointer[grpc.ClientConn]
	var at atomic.Pointer[net.Addr]
	var secret []byte
	if cfg.sharesSecret() {
		secret = proto.NewControlSecret()
	}
	config, err := clientConfig(cfg, runDir, secret, &made, &at, func(env []string, tmpDir string) runner.Runner {
		p := newProcess(ctx, cfg.Logger, append(environment(cfg), offering(env)...), exe, theirs, secret, tmpDir)
		p.confine(cfg, runDir)
		proc.Store(p)
		return p
	})
	if err != nil {
		ours.Close()
		return nil, err
	}
	client := plugin.NewClient(config)
	conn, err := connect(client, &at, func() error {
		e := &Error{Plugin: cfg.Name, Path: exe.path}
		if judgeHandshake(cfg, e, proc.Load().handshake()) {
			return e
		}
		return nil
	})
	if err != nil {
		ours.Close()
		err = explain(ctx, cfg, exe, proc.Load(), err)
		if p := proc.Load(); p != nil {
			_ = p.Kill(ctx)
		}
		client.Kill()
		if c := made.Load(); c != nil {
			_ = c.Close() // go-plugin loses the connection if the plugin dies while it is made
		}
		removeSockets(proc.Load())
		return nil, err
	}
	defer proc.Load().unbind()
	inst := newInstance(cfg, exe, proc.Load(), client, conn, ours)
	if err := inst.introduce(ctx); err != nil {
		inst.stop(err, 0)
		<-inst.gone
		return nil, explain(ctx, cfg, exe, inst.proc, err)
	}
	// The connection exists, so the socket needs no name any more. From here on no file is
	// left if a process is killed, and no cleaner of temporary files can affect a plugin
	// that runs for weeks.
	removeSockets(inst.proc)
	return inst, nil
}

func removeSockets(p *process) {
	if p != nil {
		os.RemoveAll(p.tmpDir)
	}
}

// connect starts the process, has its handshake checked by judge, and makes the control
// connection.
func connect(client *plugin.Client, at *atomic.Pointer[net.Addr], judge func() error) (*grpc.ClientConn, error) {
	addr, err := client.Start()
	if err != nil {
		return nil, err
	}
	at.Store(&addr)
	if err := judge(); err != nil {
		return nil, err
	}
	protocol, err := client.Client()
	if err != nil {
		return nil, err
	}
	conn, err := protocol.Dispense(proto.ServiceName)
	if err != nil {
		return nil, err
	}
	return conn.(*grpc.ClientConn), nil
}

// dial connects to a plugin. Once a write has failed all calls fail at once, so that the plugin is
// restarted.
func dial(ctx context.Context, at net.Addr) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, at.Network(), at.String())
	if err != nil {
		return nil, err
	}
	return failfast.Conn(c), nil
}

// connecting is how the control connection is made. By itself gRPC waits 20 s for an attempt that
// got stuck, which is longer than a plugin has for its start.
var connecting = grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: 3 * time.Second}

// clientConfig says how go-plugin starts a plugin and connects to it: by a secret that both have,
// unless it is nil. made receives the connection, and at has the plugin's address before the
// connection is made.
func clientConfig(cfg *Config, runDir string, secret []byte, made *atomic.Pointer[grpc.ClientConn], at *atomic.Pointer[net.Addr], run func(env []string, tmpDir string) runner.Runner) (*plugin.ClientConfig, error) {
	stdio := &lineWriter{log: cfg.Logger}
	var control *tls.Config
	if secret != nil {
		var err error
		if control, err = proto.ControlTLS(secret); err != nil {
			return nil, err
		}
	}
	return &plugin.ClientConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion: proto.Version, MagicCookieKey: proto.CookieKey, MagicCookieValue: proto.CookieValue,
		},
		VersionedPlugins: acceptable(),
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, tmpDir string) (runner.Runner, error) {
			return run(cmd.Env, tmpDir), nil
		},
		// Otherwise the host's variables would follow, and override, those of the plugin.
		SkipHostEnv:      true,
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		AutoMTLS:         !cfg.NoMTLS && secret == nil,
		TLSConfig:        control,
		StartTimeout:     cfg.StartTimeout,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: runDir},
		SyncStdout:       stdio,
		SyncStderr:       stdio,
		Logger:           hclog.NewNullLogger(), // it repeats what this package logs
		GRPCDialOptions: []grpc.DialOption{
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(proto.MaxMessage), grpc.MaxCallSendMsgSize(proto.MaxMessage)),
			grpc.WithInitialWindowSize(proto.StreamWindow), grpc.WithInitialConnWindowSize(proto.ConnWindow),
			grpc.WithConnectParams(connecting),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				return dial(ctx, *at.Load())
			}),
			grpc.WithIdleTimeout(0), // the socket has no name, so gRPC could not connect again
			grpc.WithStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, c *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				made.Store(c)
				return open(ctx, desc, c, method, opts...)
			}),
		},
	}, nil
}

// grpcClient is the transport plugin in go-plugin's form: Dispense returns the connection
// itself.
type grpcClient struct {
	plugin.NetRPCUnsupportedPlugin
}

func (grpcClient) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	panic("host: serves nothing")
}

func (grpcClient) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return c, nil
}
