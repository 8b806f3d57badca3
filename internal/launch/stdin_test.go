package launch

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/internal/skips"
)

func TestTerminalThatIsNotOursIsNotRead(t *testing.T) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		skips.NotRun(t, fmt.Sprint("there are no terminals: ", err), "mount /dev/pts")
	}
	defer master.Close()
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		skips.NotRun(t, fmt.Sprint("there are no terminals: ", err), "mount /dev/pts")
	}
	defer tty.Close()
	if f, err := Stdin(tty); f != nil || err != nil {
		t.Errorf("%v, %v: reading would stop us", f, err)
	}
}

func TestNoStdin(t *testing.T) {
	if f, err := Stdin(nil); f != nil || err != nil {
		t.Errorf("%v, %v", f, err)
	}
}
