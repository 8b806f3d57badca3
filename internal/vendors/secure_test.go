package vendors

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// tunnels is an HTTP proxy on the loopback network that does CONNECT and nothing else.
// It notes how many tunnels there were, and how many did not begin with TLS.
type tunnels struct {
	url         string
	made, plain atomic.Int64
}

func newTunnels(t *testing.T) *tunnels {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &tunnels{url: "http://" + ln.Addr().String()}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go p.serve(c.(*net.TCPConn))
		}
	}()
	t.Cleanup(func() { ln.Close() })
	return p
}

func (p *tunnels) serve(c *net.TCPConn) {
	defer c.Close()
	in := bufio.NewReader(c)
	req, err := http.ReadRequest(in)
	if err != nil || req.Method != http.MethodConnect {
		fmt.Fprint(c, "HTTP/1.1 405 Method Not Allowed\r\n\r\n")
		return
	}
	far, err := net.Dial("tcp", req.Host)
	if err != nil {
		fmt.Fprint(c, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
		return
	}
	defer far.Close()
	p.made.Add(1)
	fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		const handshake = 22 // TLS's type of a record that begins a connection
		if first, err := in.Peek(1); err == nil && first[0] != handshake {
			p.plain.Add(1)
		}
		_, _ = io.Copy(far, in)
		_ = far.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(c, far)
}

// Two sites between which there is nothing but an HTTP proxy, with the certificates that
// impi-node cert makes and routes that want encryption.
func TestSecureJobThroughProxy(t *testing.T) {
	g, err := Find("websocket")
	if err != nil {
		t.Fatal(err)
	}
	path := built(t, g)
	bin, dir := programs(t), t.TempDir()
	cert := exec.Command(filepath.Join(bin, "impi-node"), "cert", "init", "-dir", filepath.Join(dir, "certs"), "-sites", "alpha,beta")
	if out, err := cert.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p := newTunnels(t)
	site := func(name string, rank int) string {
		return fmt.Sprintf(`
site %q {
  client = %d
  host { address = "127.0.0.%d"  procs = 2 }
  transport "websocket" {
    plugin = %q
    config {
      cert = "certs/%s.pem"
      key = "certs/%[1]s.key"
      ca = "certs/ca.pem"
      proxy = %[6]q
    }
  }
}
`, name, rank, rank+2, path, name, p.url)
	}
	job := "job { embedded_server {} }\nprogram { command = [\"" + bin + "/ring\"] }\n" + site("alpha", 0) + site("beta", 1) + `
route "*" {
  prefer = ["websocket"]
  require_tls = true
}
`
	if err := os.WriteFile(filepath.Join(dir, "job.hcl"), []byte(job), 0o600); err != nil {
		t.Fatal(err)
	}
	log := runJob(t, bin, dir, "job.hcl")
	if !strings.Contains(log, "as it must be") || !strings.Contains(log, "transport=websocket data_plane=") {
		t.Errorf("%s", log)
	}
	if p.made.Load() < 4 || p.plain.Load() != 0 {
		t.Errorf("%d tunnels, %d of them not of TLS", p.made.Load(), p.plain.Load())
	}
}
