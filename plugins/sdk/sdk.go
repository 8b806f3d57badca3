// Package sdk is what a transport plugin's main imports:
//
//	func main() { sdk.Serve(sdk.Options{Transport: mine.New()}) }
//
// It speaks the protocol of docs/plugin-protocol.md for a transports.Transport. Links that
// are transports.Socket or transports.Memory are handed to the node as descriptors; of
// links that are transports.Piped this process passes the bytes on.
//
// Importing it has an effect in a process that a node has started as a plugin: file
// descriptor 1, which carries the handshake, is replaced before main runs, so that no other
// output can spoil the handshake. Such output becomes log lines.
package sdk

import (
	"crypto/tls"
	"fmt"
	"io"
	"os"

	"github.com/openimpi/impi/plugins/sdk/proto"
	"github.com/openimpi/impi/plugins/sdk/proto/handover"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// Options describe the plugin to serve.
type Options struct {
	// Transport is what the plugin serves. Its Info must not change.
	Transport transports.Transport

	// Stats, if not nil, returns additional numbers for the operator.
	Stats func() map[string]float64

	// Protocols are the protocol versions that the plugin claims to speak, for tests of how
	// nodes handle older and newer plugins. Nil means all that it speaks.
	Protocols []int
}

// IsPlugin reports whether a node has started this process as its plugin. A program that
// can be both must call it before it does anything else.
func IsPlugin() bool { return started }

// Builtin returns the name of the transport that the node wants this process to serve, for a
// program with several built in. It returns "" in other plugins.
func Builtin() string { return os.Getenv(proto.EnvBuiltin) }

// Serve serves the plugin until its node ends it, and then ends the process. If the plugin
// was started by hand it prints an explanation and exits with status 1, or with 0 for the
// arguments help and version and the flags of these names.
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
	err = serveNode(s)
	Logger().Error("the control connection cannot be served", "error", err)
	leave(s, 1)
}

// shared returns the TLS configuration of a built-in plugin, by the secret that it shares with its
// node.
func shared() (*tls.Config, error) {
	_ = os.Unsetenv(proto.EnvControl) // cannot fail for this name
	f := os.NewFile(proto.ControlFD, "secret")
	defer f.Close()
	secret := make([]byte, proto.ControlSecret)
	if _, err := io.ReadFull(f, secret); err != nil {
		return nil, fmt.Errorf("the secret of the control connection: %w", err)
	}
	return proto.ControlTLS(secret)
}

// nameProcess sets the name that ps and top show. Without it they would show the number of
// the descriptor from which the process was started.
func nameProcess(transport string) {
	_ = os.WriteFile("/proc/self/comm", []byte("impi-"+transport), 0) // errors do not matter
}
