package host

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A child moves descriptors that it inherits to numbers above the highest of them. The
// descriptor by which it executes its program may have just that number.
func TestExecutableIsNotOverwrittenInTheChild(t *testing.T) {
	exe, err := verify(&Config{Name: "tcp", Builtin: true})
	if err != nil {
		t.Fatal(err)
	}
	defer exe.file.Close()
	path, _, release, err := exe.execPath()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	var pid, fd int
	if _, err := fmt.Sscanf(path, "/proc/%d/fd/%d", &pid, &fd); err != nil {
		t.Fatal(path, err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	// The highest inherited number is one below.
	below, err := unix.FcntlInt(null.Fd(), unix.F_DUPFD_CLOEXEC, 200)
	if err != nil {
		t.Fatal(err)
	}
	high := os.NewFile(uintptr(below), "high")
	defer high.Close()
	moved, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, below+1)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(moved)
	path = fmt.Sprintf("/proc/%d/fd/%d", pid, moved)
	p, err := os.StartProcess(path, []string{"x", "-test.run=^$"}, &os.ProcAttr{
		Env: []string{"PATH=/bin"}, Files: []*os.File{null, null, null, high},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(); err != nil {
		t.Error(err)
	}
}
