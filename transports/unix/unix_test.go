package unix_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	sys "golang.org/x/sys/unix"

	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/transports/unix"
)

// dialAs, in the environment, makes this program dial an address instead of
// testing, and print how that went.
const dialAs = "IMPI_TEST_DIAL"

func TestMain(m *testing.M) {
	address := os.Getenv(dialAs)
	if address == "" {
		os.Exit(m.Run())
	}
	_, err := unix.New().Dial(context.Background(), transports.DialSpec{Address: address})
	var e *transports.Error
	if errors.As(err, &e) {
		os.Stdout.WriteString(string(e.Code) + "\n")
	}
	io.Copy(io.Discard, os.Stdin) // until the test has seen the connection
	os.Exit(0)
}

func configured(t *testing.T, settings map[string]any) *unix.Transport {
	t.Helper()
	u := unix.New()
	if err := u.Configure(settings); err != nil {
		t.Fatal(err)
	}
	return u
}

func listen(t *testing.T, u *unix.Transport, at transports.ListenSpec) transports.Listener {
	t.Helper()
	ln, err := u.Listen(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}

func code(err error) transports.Code {
	var e *transports.Error
	if !errors.As(err, &e) {
		return ""
	}
	return e.Code
}

func TestSocketFileGoesWithTheListener(t *testing.T) {
	for name, below := range map[string][]string{"short": nil, "long": {strings.Repeat("long", 40)}} {
		t.Run(name, func(t *testing.T) {
			dir := privateDir(t, below...)
			ln := listen(t, unix.New(), transports.ListenSpec{Dir: dir, Name: "x"})
			if st, err := os.Stat(filepath.Join(dir, "x.sock")); err != nil || st.Mode()&os.ModeSocket == 0 {
				t.Errorf("no socket file: %v", err)
			}
			ln.Close()
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// A listener that was killed leaves its file; the next one takes its place.
func TestDeadSocketFileIsReplaced(t *testing.T) {
	at := transports.ListenSpec{Dir: privateDir(t), Name: "x"}
	dead, err := net.Listen("unix", filepath.Join(at.Dir, "x.sock"))
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	dead.Close()
	listen(t, unix.New(), at)
}

func TestLivingListenerIsNotReplaced(t *testing.T) {
	at := transports.ListenSpec{Dir: privateDir(t), Name: "x"}
	u := unix.New()
	ln := listen(t, u, at)
	if _, err := u.Listen(t.Context(), at); code(err) != transports.CodeResource {
		t.Fatalf("a second listener of that name: %v", err)
	}
	l, err := u.Dial(t.Context(), transports.DialSpec{Address: ln.Address()})
	if err != nil {
		t.Fatalf("the first one is gone: %v", err)
	}
	l.Close()
}

func TestListenErrors(t *testing.T) {
	dir := privateDir(t)
	shared := privateDir(t)
	if err := os.Chmod(shared, 0o750); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	long := privateDir(t, strings.Repeat("long", 40))
	for _, c := range []struct {
		at   transports.ListenSpec
		says string
	}{
		{transports.ListenSpec{Dir: dir}, "name"},
		{transports.ListenSpec{Dir: dir, Name: "../x"}, "slashes"},
		{transports.ListenSpec{Name: "x"}, "folder"},
		{transports.ListenSpec{Dir: filepath.Join(dir, "none"), Name: "x"}, "no such file"},
		{transports.ListenSpec{Dir: file, Name: "x"}, "not a folder"},
		{transports.ListenSpec{Dir: shared, Name: "x"}, "chmod 700"},
		{transports.ListenSpec{Dir: long, Name: strings.Repeat("n", 65)}, "64 bytes"},
	} {
		_, err := unix.New().Listen(t.Context(), c.at)
		if code(err) != transports.CodeAddress || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want code address and %q", c.at, err, c.says)
		}
	}
}

func TestDialErrors(t *testing.T) {
	dir := privateDir(t)
	dead, err := net.Listen("unix", filepath.Join(dir, "dead.sock"))
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	dead.Close()
	for address, want := range map[string]transports.Code{
		filepath.Join(dir, "none.sock"):                              transports.CodeUnreachable,
		filepath.Join(dir, strings.Repeat("long/", 40), "none.sock"): transports.CodeUnreachable,
		filepath.Join(dir, "dead.sock"):                              transports.CodeRefused,
		"@impi-nobody-has-this-name":                                 transports.CodeRefused,
		"relative/path":                                              transports.CodeAddress,
		"@":                                                          transports.CodeAddress,
		"@" + strings.Repeat("x", 108):                               transports.CodeAddress,
		"/" + strings.Repeat("x", 108):                               transports.CodeAddress,
		"/a%00b":                                                     transports.CodeAddress,
		"/a%zz":                                                      transports.CodeAddress,
		"/":                                                          transports.CodeAddress,
	} {
		if _, err := unix.New().Dial(t.Context(), transports.DialSpec{Address: address}); code(err) != want {
			t.Errorf("%.60s: %v, want code %s", address, err, want)
		}
	}
}

func TestAbstractLeavesNoFile(t *testing.T) {
	dir := privateDir(t)
	u := configured(t, map[string]any{"abstract": true})
	a := listen(t, u, transports.ListenSpec{Dir: dir, Name: "x"})
	b := listen(t, u, transports.ListenSpec{Dir: dir, Name: "x"})
	if !strings.HasPrefix(a.Address(), "@impi-x-") || a.Address() == b.Address() {
		t.Errorf("addresses %s and %s", a.Address(), b.Address())
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("files: %v", left)
	}
}

func TestSendBuffer(t *testing.T) {
	u := configured(t, map[string]any{"send_buffer": 70000.0})
	ln := listen(t, u, transports.ListenSpec{Dir: privateDir(t), Name: "x"})
	a, err := u.Dial(t.Context(), transports.DialSpec{Address: ln.Address()})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := ln.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for side, fd := range map[string]int{"dialled": a.Handle(), "accepted": b.Handle()} {
		if v, err := sys.GetsockoptInt(fd, sys.SOL_SOCKET, sys.SO_SNDBUF); v != 140000 || err != nil {
			t.Errorf("%s: send buffer %d, %v", side, v, err)
		}
	}
}

func TestConfigureRefuses(t *testing.T) {
	var fault *transports.SettingError
	if err := unix.New().Configure(map[string]any{"send_buffer": -5.0}); !errors.As(err, &fault) || fault.Name != "send_buffer" {
		t.Errorf("send_buffer = -5: %v", err)
	}
}

// Both sides' checks refuse a process of another user: here it dials, and in the abstract
// namespace no directory keeps it out.
func TestStrangersAreTurnedAway(t *testing.T) {
	if os.Geteuid() != 0 {
		skips.NotRun(t, "only root can run a process as another user", "be root")
	}
	u := configured(t, map[string]any{"abstract": true})
	ln := listen(t, u, transports.ListenSpec{Name: "x"})
	cmd := strangerCommand(t, ln.Address())
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		skips.NotRun(t, fmt.Sprint("this program cannot be run as nobody: ", err), "let everybody enter the folder of temporary files")
	}
	defer cmd.Wait()
	defer in.Close()
	_, err = ln.Accept(t.Context())
	var e *transports.Error
	if !errors.As(err, &e) || e.Code != transports.CodeAuth || !e.Retryable || !strings.Contains(e.Reason, "65534") {
		t.Errorf("Accept of a stranger: %v", err)
	}
	// Our own user can still connect.
	l, err := u.Dial(t.Context(), transports.DialSpec{Address: ln.Address()})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if l, err = ln.Accept(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.Close()
}

// strangerCommand is this program, dialling as user nobody. It is run through a descriptor,
// as nobody may not be allowed to read its path.
func strangerCommand(t *testing.T, address string) *exec.Cmd {
	t.Helper()
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { self.Close() })
	cmd := exec.Command("/proc/self/fd/3")
	cmd.ExtraFiles = []*os.File{self}
	cmd.Env = []string{dialAs + "=" + address}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	return cmd
}
