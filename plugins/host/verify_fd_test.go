package host

import (
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
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	below, err := unix.FcntlInt(null.Fd(), unix.F_DUPFD_CLOEXEC, 200)
	if err != nil {
		t.Fatal(err)
	}
	high := os.NewFile(uintptr(below), "high")
	defer high.Close()
	files := []*os.File{high} // and enough others for some to be moved
	for len(files) < 12 {
		files = append(files, null)
	}
	path, release, err := exe.execPath(files)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	p, err := os.StartProcess(path, []string{"x", "-test.run=^$"}, &os.ProcAttr{
		Env: []string{"PATH=/bin"}, Files: files,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(); err != nil {
		t.Error(err)
	}
}
