package tcp

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// algorithmOf is the congestion control of a link between two loopback
// addresses, seen from the side that dialled.
func algorithmOf(t *testing.T, settings map[string]any) string {
	t.Helper()
	tr := New()
	if err := tr.Configure(settings); err != nil {
		t.Fatal(err)
	}
	l, err := tr.Listen(context.Background(), transports.ListenSpec{Host: "127.0.0.2"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan link.Link, 1)
	go func() {
		a, _ := l.Accept(context.Background())
		accepted <- a
	}()
	d, err := tr.Dial(context.Background(), transports.DialSpec{Address: l.Address()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if a := <-accepted; a != nil {
		defer a.Close()
	}
	name, err := unix.GetsockoptString(d.Handle(), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func TestCongestionControlInsideOneMachine(t *testing.T) {
	if got := algorithmOf(t, map[string]any{"congestion": "auto"}); got != nearCongestion {
		t.Errorf("auto is %q", got)
	}
	system, err := os.ReadFile("/proc/sys/net/ipv4/tcp_congestion_control")
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimSpace(string(system))
	if got := algorithmOf(t, map[string]any{"congestion": name}); got != name {
		t.Errorf("%s became %q", name, got)
	}
}

func TestCongestionControlThatTheKernelLacks(t *testing.T) {
	err := New().Configure(map[string]any{"congestion": "telepathy"})
	var fault *transports.SettingError
	if !errors.As(err, &fault) || fault.Name != "congestion" {
		t.Errorf("got %v", err)
	}
}
