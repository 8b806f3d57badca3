package vendors

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/internal/conformance"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/fabric/fabrictest"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

const sanitized = "-O1 -g -Werror -fsanitize=address,undefined -fno-sanitize-recover=all"

// sanitizers says what is not run if gcc has none.
func sanitizers(t *testing.T) {
	t.Helper()
	cmd := exec.Command(skips.Program(t, "gcc"), "-fsanitize=address,undefined", "-x", "c", "-", "-o", filepath.Join(t.TempDir(), "x"))
	cmd.Stdin = strings.NewReader("int main(void) { return 0; }")
	if out, err := cmd.CombinedOutput(); err != nil {
		skips.NotRun(t, "gcc has no sanitizers: "+brief(out), "apt-get install libgcc-dev")
	}
}

// The library's data plane rdma finds what procs and peers do wrong, and registers and reads as it
// must. testdata/rdma.c tries it from inside, with sanitizers.
func TestRDMAInC(t *testing.T) {
	c, err := Find("pretend-c")
	if err != nil {
		t.Fatal(err)
	}
	built(t, c) // or says what is missing
	sanitizers(t)
	library, err := filepath.Glob(filepath.Join(root, "plugins", "c", "*.c"))
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "rdma")
	args := append(strings.Fields(sanitized), "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wno-override-init",
		"-I"+filepath.Join(root, "plugins", "c"), "-o", program, filepath.Join("testdata", "rdma.c"))
	args = append(append(args, library...), "-lnghttp2", "-lssl", "-lcrypto", "-pthread")
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(program).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The example in C for hardware that reads remote memory keeps the rules with sanitizers: as it is,
// if little can stay registered, if only some memory can be registered, and if none can.
func TestPretendInCWithSanitizers(t *testing.T) {
	c, err := Find("pretend-c")
	if err != nil {
		t.Fatal(err)
	}
	built(t, c)
	sanitizers(t)
	path := filepath.Join(t.TempDir(), "impi-transport-pretend-c")
	if err := BuildC(filepath.Join(root, "examples", "plugins", "pretend-c"), path, "CFLAGS="+sanitized); err != nil {
		t.Fatal(err)
	}
	for rules, settings := range map[string]map[string]any{
		"P-RDMA|P-LINK|T-CLOSE|T-ORDER|T-PRESS|P-LIFE-0[1-4]": nil,
		"P-RDMA-0[1-4]":           {"registered": 256.0 * 1024},
		"P-RDMA-0[124]|T-ORDER":   {"limit": 3e6, "rails": 16.0},
		"P-RDMA-0[1-4]|T-ORDER-0": {"limit": 1.0},
	} {
		// A sanitizer has rights of its own to ask for.
		s := conformance.Subject{Path: path, Settings: settings, Unconfined: true}
		r, err := conformance.Run(t.Context(), s, conformance.Options{Quick: true, Run: regexp.MustCompile(rules)})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range r.Results {
			if x.Verdict == transporttest.Fail {
				t.Errorf("with %v: %s is %s: %s", settings, x.ID, x.Verdict, x.Reason)
			}
		}
		if r.Passed < 4-strings.Count(rules, "[124]") {
			t.Errorf("with %v only %d rules were tried", settings, r.Passed)
		}
	}
}

// A plugin in C and one in Go are peers: their libraries speak the same protocol over a connection.
func TestPeersInCAndGo(t *testing.T) {
	c, err := Find("pretend-c")
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	p, err := host.Start(ctx, host.Config{Name: c.Name, Path: built(t, c)})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ln, err := p.Transport().Listen(ctx, transports.ListenSpec{Host: "127.0.0.1", Dir: t.TempDir(), Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	inGo, err := fabrictest.New()
	if err != nil {
		t.Fatal(err)
	}
	a, err := inGo.Dial(ctx, transports.DialSpec{Address: ln.Address()})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := ln.Accept(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	want := make([]byte, 3<<20+17)
	for i := range want {
		want[i] = byte(i*7 + i>>11)
	}
	for _, x := range [][2]link.Link{{a, b}, {b, a}} {
		sent := make(chan error, 1)
		go func() { sent <- sendAll(ctx, x[0], want) }()
		got := make([]byte, len(want))
		if err := receiveAll(ctx, x[1], got); err != nil {
			t.Fatal(err)
		}
		if err := <-sent; err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%v, the bytes are the same: %v", err, bytes.Equal(got, want))
		}
	}
}

func sendAll(ctx context.Context, l link.Link, b []byte) error {
	for len(b) > 0 {
		n, err := l.Send([][]byte{b})
		if err != nil {
			return err
		}
		if b = b[n:]; n == 0 && !l.Arm(link.Writable) {
			sleepOn(ctx, l, unix.POLLOUT)
		}
	}
	return nil
}

func receiveAll(ctx context.Context, l link.Link, b []byte) error {
	for len(b) > 0 {
		n, err := l.Recv([][]byte{b})
		if err != nil {
			return err
		}
		if b = b[n:]; n == 0 && !l.Arm(link.Readable) {
			sleepOn(ctx, l, unix.POLLIN)
		}
	}
	return nil
}

func sleepOn(ctx context.Context, l link.Link, events int16) {
	for ctx.Err() == nil {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(l.Handle()), Events: events}}, 100)
		if n > 0 || err != nil {
			return
		}
	}
}
