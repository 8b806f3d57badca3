package wireup

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/board"
)

// A board that goes from node to procs is one memory for all of them.
func TestBoardIsShared(t *testing.T) {
	made, err := NewBoard(2)
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close()
	if n := len(made.Descriptors()); n != 3 {
		t.Fatalf("%d descriptors for 2 procs", n)
	}
	var members [2]*board.Member
	for i := range members {
		fd, err := unix.FcntlInt(made.Memory.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		b, back, err := OpenBoard(fd, 2)
		if err != nil {
			t.Fatal(err)
		}
		if members[i], err = b.Member(0, 2, i); err != nil {
			t.Fatal(err)
		}
		at, size := members[i].Backing(board.MaxPost)
		if err := back(at, size); err != nil {
			t.Fatal(err)
		}
	}
	step := board.FirstStep(0)
	members[0].Begin(step)
	room := members[0].Room(step, board.MaxPost)
	room[0], room[board.MaxPost-1] = 1, 2
	members[0].Post(step, 1, board.MaxPost)
	if got, err := members[1].Read(0, step, 1, board.MaxPost); err != nil || got[0] != 1 || got[board.MaxPost-1] != 2 {
		t.Errorf("the other proc sees something else: %v", err)
	}
}

// Memory that its other holders could shrink is refused, and so is what is no board.
func TestBoardIsChecked(t *testing.T) {
	made, err := NewBoard(2)
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close()
	if err := unix.Ftruncate(int(made.Memory.Fd()), 1); err == nil {
		t.Error("a board can be made smaller")
	}
	refused := func(name string, fd, procs int) {
		t.Helper()
		if _, _, err := OpenBoard(fd, procs); !errors.Is(err, board.ErrBoard) {
			t.Errorf("%s: %v", name, err)
		}
	}
	fd, err := unix.FcntlInt(made.Memory.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	refused("a board for two where there are three", fd, 3)
	for name, seals := range map[string]int{"no seals": 0, "zeroes": boardSeals} {
		fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Ftruncate(fd, int64(board.Size(2))); err != nil {
			t.Fatal(err)
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
			t.Fatal(err)
		}
		refused(name, fd, 2)
	}
	if _, err := NewBoard(board.MaxProcs + 1); !errors.Is(err, board.ErrBoard) {
		t.Errorf("too many procs: %v", err)
	}
}
