package transporttest_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// plain is the example of docs/transports.md.
//
// docs: begin
type plain struct{}

func (plain) Info() transports.Info {
	return transports.Info{Name: "plain", Version: "1", Vendor: "example"}
}

func (plain) Capabilities() transports.Capabilities {
	return transports.Capabilities{DataPlanes: []transports.DataPlane{transports.PlaneFD}, Reach: transports.ReachNetwork}
}

func (plain) Schema() []transports.Setting { return nil }

func (plain) Configure(map[string]any) error { return nil }

func (plain) Listen(ctx context.Context, at transports.ListenSpec) (transports.Listener, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(at.Host, "0"))
	if err != nil {
		return nil, socket.Failure("plain", "listen", at.Host, err)
	}
	return &listener{socket.NewAcceptor(ln.(*net.TCPListener)), ln.Addr().String()}, nil
}

func (plain) Dial(ctx context.Context, to transports.DialSpec) (link.Link, error) {
	if _, err := netip.ParseAddrPort(to.Address); err != nil {
		return nil, socket.BadAddress("plain", "dial", to.Address, `it should be "ip:port"`)
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", to.Address)
	return made("dial", to.Address, conn, err)
}

type listener struct {
	*socket.Acceptor
	address string
}

func (l *listener) Address() string { return l.address }

func (l *listener) Accept(ctx context.Context) (link.Link, error) {
	conn, err := l.Acceptor.Accept(ctx)
	return made("accept", l.address, conn, err)
}

// docs: end

// made is the last step of Dial and Accept.
//
// docs: begin
func made(op, address string, conn any, err error) (link.Link, error) {
	if errors.Is(err, link.ErrClosed) {
		return nil, err
	}
	if err == nil {
		var l *socket.Link
		if l, err = socket.FromConn(conn.(socket.Conn)); err == nil {
			return l, nil
		}
	}
	return nil, socket.Failure("plain", op, address, err)
}

// docs: end

func TestExample(t *testing.T) {
	transporttest.Run(t, func(*testing.T) transporttest.Harness {
		return transporttest.Harness{
			Transport: plain{},
			Listen:    transports.ListenSpec{Host: "127.0.0.1"},
			Large:     1 << 20,
		}
	})
}

// The page shows the code that TestExample runs, and the cases that there are.
func TestDocumentationIsUpToDate(t *testing.T) {
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../../docs/transports.md")
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "// docs: begin\n", "// docs: end\n"
	for i, part := range strings.Split(string(source), begin)[1:3] {
		code, _, _ := strings.Cut(part, end)
		if !strings.Contains(string(page), strings.TrimSpace(code)) {
			t.Errorf("part %d of the example is not on the page as it is here", i+1)
		}
	}
	for _, c := range transporttest.Cases() {
		if !strings.Contains(string(page), "| "+c.ID+" | `"+c.Name+"` | "+c.Rule+" |") {
			t.Errorf("the case %s is not on the page as it is here", c.Name)
		}
	}
}
