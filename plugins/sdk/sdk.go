// Package sdk is what a transport plugin's main imports:
//
//	func main() { sdk.Serve(sdk.Options{Transport: mine.New()}) }
//
// It speaks the protocol of docs/plugin-protocol.md for a transports.Transport.
// Links that are transports.Socket or transports.Memory are handed to the node as
// descriptors; the bytes of those that are transports.Piped are passed on here.
//
// Importing it has an effect in a process that a node has started as a plugin:
// file descriptor 1, which carries the handshake, is put aside before main runs,
// so that nothing printed can spoil it. What is printed becomes log lines.
package sdk

import (
	"context"
	"fmt"
	"os"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/openimpi/impi/plugins/proto"
	"github.com/openimpi/impi/plugins/proto/handover"
	"github.com/openimpi/impi/transports"
)

// Options say what to serve.
type Options struct {
	// Transport is what the plugin offers. Its Info must not change.
	Transport transports.Transport

	// Stats, if any, gives further numbers for the operator.
	Stats func() map[string]float64

	// Protocols are the versions of the protocol to say that the plugin speaks, for
	// tests of how nodes deal with older and newer plugins. Nil: all that it does.
	Protocols []int
}

// IsPlugin reports whether a node has started this process as its plugin. A
// program that can be both asks before it does anything else.
func IsPlugin() bool { return started }

// Builtin names the transport that the node wants this process to serve, for a
// program with several built in. It is empty for other plugins.
func Builtin() string { return os.Getenv(proto.EnvBuiltin) }

// Serve serves the plugin until its node has no more use for it, and ends the
// process. Started by hand it explains itself and exits with status 1, or with 0 if that
// was asked for: help, version and the flags of these names.
func Serve(o Options) {
	if o.Transport == nil {
		panic("sdk: Serve without a Transport")
	}
	if !IsPlugin() {
		os.Exit(byHand(o, os.Args, os.Stdout, os.Stderr))
	}
	fds, err := handover.Open(proto.DescriptorFD)
	if err != nil {
		fmt.Fprintf(os.Stderr, "[ERROR] %v: the node must give the plugin a descriptor channel\n", err)
		os.Exit(1)
	}
	nameProcess(o.Transport.Info().Name)
	captureStdLog()
	s := newServer(o, fds)
	go watchNode(fds, s)
	go watchSignals(s)
	if err := filterStdout(); err != nil {
		fmt.Fprintf(os.Stderr, "[ERROR] %v\n", err)
		os.Exit(1)
	}
	plugin.Serve(serveConfig(s))
	leave(s, 0)
}

// nameProcess makes ps and top show what the process is: it was started through
// a descriptor, and would go by its number.
func nameProcess(transport string) {
	_ = os.WriteFile("/proc/self/comm", []byte("impi-"+transport), 0) // cosmetic
}

func serveConfig(s *server) *plugin.ServeConfig {
	return &plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion: proto.Version, MagicCookieKey: proto.CookieKey, MagicCookieValue: proto.CookieValue,
		},
		VersionedPlugins: versioned(s),
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			// The cookie has been looked at. Processes that we start are no plugins.
			_ = os.Unsetenv(proto.CookieKey) // fails for names that cannot be
			return grpc.NewServer(append(opts, serverOptions(s)...)...)
		},
		// go-plugin tells the story of its life below this level.
		Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, Output: stderr, JSONFormat: true}),
	}
}

func serverOptions(s *server) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(s.calls.intercept),
		grpc.MaxRecvMsgSize(proto.MaxMessage),
		grpc.InitialWindowSize(proto.StreamWindow), grpc.InitialConnWindowSize(proto.ConnWindow),
	}
}

// versioned is the service under each version that the plugin says to speak.
func versioned(s *server) map[int]plugin.PluginSet {
	sets := make(map[int]plugin.PluginSet)
	for _, v := range s.protocols {
		sets[v] = plugin.PluginSet{proto.ServiceName: grpcServer{s: s, version: v}}
	}
	return sets
}

// grpcServer registers the service with go-plugin.
type grpcServer struct {
	plugin.NetRPCUnsupportedPlugin
	s       *server
	version int
}

func (g grpcServer) GRPCServer(_ *plugin.GRPCBroker, to *grpc.Server) error {
	g.s.speak(g.version)
	proto.RegisterTransportServer(to, g.s)
	return nil
}

func (grpcServer) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	panic("sdk: calls nobody")
}
