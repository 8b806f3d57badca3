package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/openimpi/impi/plugins/sdk/support/pki"
)

// floorAddress is the environment variable by which the first process of a floor
// over QUIC learns where the second one listens.
const floorAddress = "IMPI_BENCH_FLOOR"

// secure is the transport block of a transport that needs certificates, which it
// makes, or of a plugin. "tcp+tls" is tcp with TLS.
func (w *own) secure(name string) string {
	if v := w.o.vendor; v.file != "" && name == w.o.transport {
		return v.block(name)
	}
	if !needsTwoSites(name) {
		return ""
	}
	tls := ""
	if name == secureTCP {
		name, tls = "tcp", "    tls = true\n"
	}
	if err := w.certificates(); err != nil {
		panic(err) // the folder is ours and empty
	}
	return fmt.Sprintf("transport %q {\n  config {\n%s    cert = %q\n    key = %q\n    ca = %q\n  }\n}\n",
		name, tls, credentials["cert"], credentials["key"], credentials["ca"])
}

// credentials are the files beside the job file, by the names of the settings.
var credentials = map[string]string{"cert": "bench.pem", "key": "bench.key", "ca": "ca.pem"}

// needsTwoSites reports whether a transport's plugin would talk to itself within one site.
func needsTwoSites(transport string) bool { return transport == secureTCP || transport == "quic" }

// twoSites reports whether the procs belong to two sites, as they do for a plugin's file and for a
// transport whose plugin would talk to itself within one site.
func (o *options) twoSites() bool { return o.vendor.file != "" || needsTwoSites(o.transport) }

const secureTCP = "tcp+tls"

// certificates puts a CA and one certificate for all sites beside the job file.
func (w *own) certificates() error {
	if _, err := os.Stat(filepath.Join(w.dir, credentials["ca"])); err == nil {
		return nil
	}
	ca, err := pki.NewAuthority("impi-bench", time.Now(), time.Hour)
	if err != nil {
		return err
	}
	pair, err := ca.Issue("bench", time.Now(), time.Hour)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"cert": pair.Cert, "key": pair.Key, "ca": ca.Pair().Cert} {
		if err := os.WriteFile(filepath.Join(w.dir, credentials[name]), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func quicPort() (*os.File, string, error) {
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, "", fmt.Errorf("floor: %w", err)
	}
	defer func() { _ = c.Close() }() // the file is a duplicate
	f, err := c.File()
	if err != nil {
		return nil, "", fmt.Errorf("floor: %w", err)
	}
	return f, c.LocalAddr().String(), nil
}

// quicEnd is the library alone: one connection, one stream, blocking calls, and the
// windows of our transport.
func quicEnd(first bool, address string) (io.ReadWriteCloser, error) {
	config := &quic.Config{
		InitialStreamReceiveWindow: 1 << 20, MaxStreamReceiveWindow: 16 << 20,
		InitialConnectionReceiveWindow: 64 << 20, MaxConnectionReceiveWindow: 64 << 20,
		MaxIdleTimeout: time.Minute,
	}
	secret := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"floor"}, MinVersion: tls.VersionTLS13}
	ctx := context.Background()
	if first {
		c, err := quic.DialAddr(ctx, address, secret, config)
		if err != nil {
			return nil, err
		}
		s, err := c.OpenStream()
		return &quicFloor{s, c, first}, err
	}
	if err := selfSign(secret); err != nil {
		return nil, err
	}
	udp, err := net.FilePacketConn(os.NewFile(3, "floor"))
	if err != nil {
		return nil, err
	}
	ln, err := quic.Listen(udp, secret, config)
	if err != nil {
		return nil, err
	}
	c, err := ln.Accept(ctx)
	if err != nil {
		return nil, err
	}
	s, err := c.AcceptStream(ctx)
	return &quicFloor{s, c, first}, err
}

type quicFloor struct {
	*quic.Stream
	c     *quic.Conn
	first bool
}

// Close ends the connection when both have read all.
func (f *quicFloor) Close() error {
	err := f.Stream.Close()
	if !f.first {
		<-f.c.Context().Done()
		return err
	}
	_, _ = io.Copy(io.Discard, f.Stream)
	return f.c.CloseWithError(0, "")
}

func selfSign(c *tls.Config) error {
	ca, err := pki.NewAuthority("floor", time.Now(), time.Hour)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(ca.Pair().Cert, ca.Pair().Key)
	c.Certificates = []tls.Certificate{pair}
	return err
}
