package machine

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
)

func localPair(t *testing.T) (Set, [2]int) {
	t.Helper()
	s, err := Local{}.NewSet()
	if err != nil {
		t.Fatal(err)
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, fds
}

func TestWakeEndsWaitUntilClear(t *testing.T) {
	s, _ := localPair(t)
	go s.Wake()
	for range 2 {
		events, err := s.Wait(-1)
		if err != nil || len(events) != 1 || events[0].Key != WakeKey {
			t.Fatalf("%v %v", events, err)
		}
	}
	s.Clear()
	if events, err := s.Wait(0); err != nil || len(events) != 0 {
		t.Errorf("after Clear: %v %v", events, err)
	}
}

func TestSetNamesTheLinkThatIsReady(t *testing.T) {
	s, fds := localPair(t)
	for i, fd := range fds {
		if err := s.Add(fd, uint32(i), link.Readable); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := unix.Write(fds[0], []byte("x")); err != nil {
		t.Fatal(err)
	}
	events, err := s.Wait(-1)
	if err != nil || len(events) != 1 || events[0].Key != 1 || !events[0].Readable {
		t.Fatalf("%v %v", events, err)
	}
	if err := s.Remove(fds[1]); err != nil {
		t.Fatal(err)
	}
	if events, err := s.Wait(0); err != nil || len(events) != 0 {
		t.Errorf("after Remove: %v %v", events, err)
	}
}

func TestTimerCalls(t *testing.T) {
	done := make(chan struct{})
	Local{}.AfterFunc(0, func() { close(done) })
	<-done
}

func TestWakeAfterCloseTouchesNobodysDescriptor(t *testing.T) {
	s, err := Local{}.NewSet()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK) // takes the number
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	next, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(next)
	s.Wake()
	for _, fd := range []int{fd, next} {
		if _, err := unix.Read(fd, make([]byte, 8)); err != unix.EAGAIN {
			t.Errorf("somebody else's eventfd was woken: %v", err)
		}
	}
}
