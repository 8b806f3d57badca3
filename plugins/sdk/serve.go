package sdk

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/openimpi/impi/plugins/sdk/proto"
	"github.com/openimpi/impi/plugins/sdk/support/failfast"
)

// Environment variables by which go-plugin's client, which is in the node, informs a plugin.
const (
	envVersions   = "PLUGIN_PROTOCOL_VERSIONS"
	envSocketDir  = "PLUGIN_UNIX_SOCKET_DIR"
	envClientCert = "PLUGIN_CLIENT_CERT"
)

// goPlugin is the version of go-plugin's handshake, and goPluginHealth the name under which its
// client asks for the health of a plugin.
const (
	goPlugin       = 1
	goPluginHealth = "plugin"
)

// serveNode answers the node until it ends the process: the control socket is opened, and then the
// handshake printed. go-plugin's own server is not used, because with it the linker keeps every
// method of every type: a plugin is a quarter smaller without.
func serveNode(s *server) error {
	signal.Notify(make(chan os.Signal, 1), os.Interrupt) // this signal is for the node: a terminal sends it to both
	// The cookie was checked. Child processes are not plugins.
	_ = os.Unsetenv(proto.CookieKey) // cannot fail for this name
	s.speak(agreed(s.protocols, os.Getenv(envVersions)))
	config, cert, err := security()
	if err != nil {
		return fmt.Errorf("the certificate of the control connection: %w", err)
	}
	ln, err := net.Listen("unix", filepath.Join(os.Getenv(envSocketDir), "plugin"+strconv.Itoa(os.Getpid())))
	if err != nil {
		return fmt.Errorf("the control socket: %w", err)
	}
	g := newGRPC(s, config)
	if _, err := fmt.Fprintf(stdout, "%d|%d|unix|%s|grpc|%s\n", goPlugin, s.version.Load(), ln.Addr(), cert); err != nil {
		return fmt.Errorf("the handshake: %w", err)
	}
	return g.Serve(failfast.Listener(ln))
}

// agreed returns the highest of our versions that the node lists, too; if there is none the lowest,
// so that the node can say what does not fit.
func agreed(ours []int, offered string) int {
	list := strings.Split(offered, ",")
	ours = slices.Sorted(slices.Values(ours))
	for _, v := range slices.Backward(ours) {
		if slices.Contains(list, strconv.Itoa(v)) {
			return v
		}
	}
	return ours[0]
}

// newGRPC makes a server with the service of the protocol and those of go-plugin that the node asks
// for.
func newGRPC(s *server, config *tls.Config) *grpc.Server {
	options := []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(s.calls.intercept),
		grpc.MaxRecvMsgSize(proto.MaxMessage),
		grpc.InitialWindowSize(proto.StreamWindow), grpc.InitialConnWindowSize(proto.ConnWindow),
	}
	if config != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	g := grpc.NewServer(options...)
	alive := health.NewServer()
	alive.SetServingStatus(goPluginHealth, grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(g, alive)
	g.RegisterService(&controller, s)
	proto.RegisterTransportServer(g, s)
	return g
}

// controller is go-plugin's service by which its client ends a plugin. Its message has no fields.
var controller = grpc.ServiceDesc{
	ServiceName: "plugin.GRPCController",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{
		MethodName: "Shutdown",
		Handler: func(s any, _ context.Context, read func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			empty := new(emptypb.Empty)
			if err := read(empty); err != nil {
				return nil, err
			}
			go leave(s.(*server), 0)
			return empty, nil
		},
	}},
}

// security returns the TLS configuration of the control connection, and the certificate for the
// handshake: that of a built-in plugin, by the secret that it shares with its node; otherwise
// AutoMTLS; none if the job's file says auto_mtls = false.
func security() (*tls.Config, string, error) {
	if os.Getenv(proto.EnvControl) != "" {
		c, err := shared()
		return c, "", err
	}
	if pem := os.Getenv(envClientCert); pem != "" {
		return mutual([]byte(pem))
	}
	return nil, "", nil
}

// certificateLife is longer than any process.
const certificateLife = 30 * 365 * 24 * time.Hour

// mutual is AutoMTLS: each end accepts the one certificate that the other one has told it.
func mutual(pem []byte) (*tls.Config, string, error) {
	nodes := x509.NewCertPool()
	if !nodes.AppendCertsFromPEM(pem) {
		return nil, "", errors.New(envClientCert + " has no certificate")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, "", err
	}
	const name = "localhost" // what the client expects
	now := time.Now()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, SerialNumber: big.NewInt(now.UnixNano()),
		NotBefore: now.Add(-time.Minute), NotAfter: now.Add(certificateLife),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, "", err
	}
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    nodes, MinVersion: tls.VersionTLS12,
		CurvePreferences: []tls.CurveID{tls.X25519}, // as in proto.ControlTLS
	}, base64.RawStdEncoding.EncodeToString(der), nil
}
