package handover

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func farOff() time.Time { return time.Now().Add(30 * time.Second) }

func channel(t *testing.T) (a, b *Conn, raw int) {
	t.Helper()
	a, f, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	raw, err = unix.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	second, err := unix.Dup(raw)
	if err != nil {
		t.Fatal(err)
	}
	if b, err = Open(second); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close(); unix.Close(raw) })
	return a, b, raw
}

// socketPair returns the two ends of a stream.
func socketPair(t *testing.T) (near, far int) {
	t.Helper()
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(p[1]) })
	return p[0], p[1]
}

func open(fd int) bool {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil
}

func TestDescriptorTravels(t *testing.T) {
	a, b, _ := channel(t)
	near, far := socketPair(t)
	preread := bytes.Repeat([]byte("p"), MaxPreread)
	if err := b.Send(&Record{Kind: KindLink, Link: 5, Mode: ModeFD, Preread: preread, FDs: []int{near}}, farOff()); err != nil {
		t.Fatal(err)
	}
	r, err := a.Receive()
	if err != nil || r.Link != 5 || len(r.FDs) != 1 || !bytes.Equal(r.Preread, preread) {
		t.Fatalf("%+v, %v", r, err)
	}
	if flags, _ := unix.FcntlInt(uintptr(r.FDs[0]), unix.F_GETFD, 0); flags&unix.FD_CLOEXEC == 0 {
		t.Error("it is not close-on-exec")
	}
	// The sender keeps no copy: the far end sees the end when the receiver closes.
	r.Close()
	if n, err := unix.Read(far, make([]byte, 1)); n != 0 || err != nil {
		t.Errorf("after Close the far end reads %d, %v", n, err)
	}
}

// What cannot be sent is closed too.
func TestSendAlwaysTakesDescriptors(t *testing.T) {
	a, b, _ := channel(t)
	near, far := socketPair(t)
	if err := b.Send(&Record{Preread: make([]byte, MaxPreread+1), FDs: []int{near}}, farOff()); !errors.Is(err, ErrRecord) {
		t.Errorf("too large: %v", err)
	}
	if n, _ := unix.Read(far, make([]byte, 1)); n != 0 {
		t.Error("the descriptor is still open")
	}
	near, far = socketPair(t)
	a.Close()
	if err := b.Send(&Record{FDs: []int{near}}, farOff()); !errors.Is(err, unix.EPIPE) {
		t.Errorf("nobody there: %v", err)
	}
	if n, _ := unix.Read(far, make([]byte, 1)); n != 0 {
		t.Error("the descriptor is still open")
	}
}

func TestSendGivesUp(t *testing.T) {
	_, b, _ := channel(t)
	past := time.Unix(1, 0)
	if err := b.Send(&Record{Kind: KindLink}, past); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if err := b.Send(&Record{Kind: KindLink}, farOff()); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

// The kernel drops descriptors for which there is no room and says so.
func TestTruncatedAncillaryData(t *testing.T) {
	a, b, raw := channel(t)
	var many, far []int
	for range 4 * MaxDescriptors {
		n, f := socketPair(t)
		many, far = append(many, n), append(far, f)
	}
	text, _ := AppendRecord(nil, &Record{Kind: KindLink, Link: 9, Mode: ModeFD, FDs: many[:1]})
	if err := unix.Sendmsg(raw, text, unix.UnixRights(many...), nil, 0); err != nil {
		t.Fatal(err)
	}
	closeAll(many)
	r, err := a.Receive()
	if !errors.Is(err, ErrTruncated) || r.Link != 9 || len(r.FDs) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, f := range far {
		if n, err := unix.Read(f, make([]byte, 1)); n != 0 || err != nil {
			t.Errorf("a descriptor is left open: %d, %v", n, err)
		}
	}
	if err := b.Send(&Record{Kind: KindLink, Link: 10}, farOff()); err != nil {
		t.Fatal(err)
	}
	if r, err := a.Receive(); err != nil || r.Link != 10 {
		t.Errorf("the channel does not go on: %+v, %v", r, err)
	}
}

// Descriptors that a record does not announce correctly are not accepted.
func TestDescriptorsAreCounted(t *testing.T) {
	a, _, raw := channel(t)
	for announced, sent := range map[int]int{1: 0, 0: 1, 2: 1, 8: 9} {
		var fds, far []int
		for range sent {
			n, f := socketPair(t)
			fds, far = append(fds, n), append(far, f)
		}
		text, _ := AppendRecord(nil, &Record{Kind: KindLink, Link: 9, FDs: make([]int, announced)})
		var oob []byte
		if sent > 0 {
			oob = unix.UnixRights(fds...)
		}
		if err := unix.Sendmsg(raw, text, oob, nil, 0); err != nil {
			t.Fatal(err)
		}
		closeAll(fds)
		if r, err := a.Receive(); !errors.Is(err, ErrRecord) || len(r.FDs) != 0 {
			t.Errorf("%d announced, %d sent: %+v, %v", announced, sent, r, err)
		}
		for _, f := range far {
			if n, err := unix.Read(f, make([]byte, 1)); n != 0 || err != nil {
				t.Errorf("a descriptor is left open: %d, %v", n, err)
			}
		}
	}
}

func TestRecordTooLong(t *testing.T) {
	a, _, raw := channel(t)
	if err := unix.Sendmsg(raw, make([]byte, MaxRecord+100), nil, nil, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Receive(); !errors.Is(err, ErrTruncated) || !errors.Is(err, ErrRecord) {
		t.Errorf("got %v", err)
	}
}

// The end of the channel means that the other side has died.
func TestEndOfChannel(t *testing.T) {
	a, b, raw := channel(t)
	b.Send(&Record{Kind: KindLink, Link: 1}, farOff())
	b.Close()
	unix.Close(raw)
	if r, err := a.Receive(); err != nil || r.Link != 1 {
		t.Errorf("what was sent before the end: %+v, %v", r, err)
	}
	if _, err := a.Receive(); err != io.EOF {
		t.Errorf("the end: %v", err)
	}
}

func TestOpenRefusesOtherFiles(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	fd, _ := unix.Dup(int(w.Fd()))
	stream, _ := socketPair(t)
	for _, fd := range []int{fd, stream} {
		if _, err := Open(fd); err == nil {
			t.Error("no error")
		}
		if open(fd) {
			t.Errorf("descriptor %d is left open", fd)
		}
	}
}
