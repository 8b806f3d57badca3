package ring

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// compiled builds the other side, which is in C, and returns its path.
func compiled(t *testing.T) string {
	t.Helper()
	cc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("NOT RUN: there is no gcc: apt-get install gcc libc6-dev")
	}
	path := filepath.Join(t.TempDir(), "peer")
	if out, err := exec.Command(cc, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", path, "testdata/peer.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// sleepOn waits as long as the link says that it is of use.
func sleepOn(t *testing.T, l *Link, want link.Interest, events int16) {
	t.Helper()
	if l.Arm(want) {
		return
	}
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(l.Handle()), Events: events}}, 30000)
		if n == 1 {
			return
		}
		if !errors.Is(err, unix.EINTR) {
			t.Fatalf("nothing happens: %v", err)
		}
	}
}

// A program in C that was written from docs/plugin-protocol.md takes the other side: all
// that is copied and lent, both ways, arrives, whoever has to wait.
func TestOtherSideInC(t *testing.T) {
	program := compiled(t)
	for _, size := range []int{minSize, 64 << 10} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			file, err := Create(size)
			if err != nil {
				t.Fatal(err)
			}
			theirs, err := unix.Dup(file)
			if err != nil {
				t.Fatal(err)
			}
			socks, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			l, err := New(file, socks[0], 0)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if err := l.AllowLending(); err != nil {
				t.Fatal(err)
			}
			_ = unix.Prctl(unix.PR_SET_PTRACER, unix.PR_SET_PTRACER_ANY, 0, 0, 0) // where Yama wants it
			region, sock := os.NewFile(uintptr(theirs), "region"), os.NewFile(uintptr(socks[1]), "socket")
			var said bytes.Buffer
			cmd := exec.Command(program)
			cmd.ExtraFiles, cmd.Stdout, cmd.Stderr = []*os.File{region, sock}, &said, os.Stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			region.Close()
			sock.Close()
			talk(t, l)
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			var took, gave int
			if _, err := fmt.Sscan(said.String(), &took, &gave); err != nil {
				t.Fatal(err, &said)
			}
			if borrows := l.out.b.takes.Load() != 0; borrows != (took > 0) {
				t.Errorf("it took %d loans, and says that it does: %v", took, borrows)
			}
			if l.in.borrows != (gave > 0) {
				t.Errorf("it gave %d loans, and we take them: %v", gave, l.in.borrows)
			}
			t.Logf("it took %d loans and gave %d", took, gave)
		})
	}
}

// talk sends a stream, partly lent, and wants it back.
func talk(t *testing.T, l *Link) {
	t.Helper()
	random := rand.New(rand.NewPCG(5, 6))
	data := make([]byte, 3<<20+17)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	sent := 0 // it says that it takes loans soon, or never
	for l.out.b.takes.Load() == 0 && sent < 1<<20 {
		n, err := l.Send([][]byte{data[sent : sent+1]})
		if err != nil {
			t.Fatal(err)
		}
		if sent += n; n == 0 {
			sleepOn(t, l, link.Writable, unix.POLLOUT)
		}
	}
	for rest := data[sent:]; len(rest) > 0; {
		n, err := l.Lend([][]byte{rest[:min(len(rest), 100+random.IntN(4*minLoan))]})
		if err != nil {
			t.Fatal(err)
		}
		if rest = rest[n:]; n == 0 {
			sleepOn(t, l, link.Writable, unix.POLLOUT)
		}
	}
	if err := l.CloseSend(); err != nil {
		t.Fatal(err)
	}
	var got []byte
	for buf := make([]byte, 50000); ; {
		n, err := l.Recv([][]byte{buf[:1+random.IntN(len(buf))]})
		got = append(got, buf[:n]...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			sleepOn(t, l, link.Readable, unix.POLLIN)
		}
	}
	if !bytes.Equal(got, data) {
		t.Errorf("%d bytes came back of %d, or others", len(got), len(data))
	}
}
