package socket

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
)

func TestQuestionsAddUpToTheSilence(t *testing.T) {
	for s := 2; s <= 3600; s++ {
		d := time.Duration(s) * time.Second
		if a := askingFor(d); a.silence() != d || a.idle < 1 || a.interval < 1 || a.count < 1 {
			t.Fatalf("%v: %+v", d, a)
		}
	}
}

// tcpPair is two links over a TCP connection with keepalive.
func tcpPair(t *testing.T, silence time.Duration) (a, b *Link) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	x, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	y, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	var links [2]*Link
	for i, c := range []net.Conn{x, y} {
		fd, err := take(c.(*net.TCPConn))
		if err == nil {
			err = SetSilence(fd, silence)
		}
		if err == nil {
			links[i], err = New(fd, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { links[i].Close() })
	}
	return links[0], links[1]
}

func TestLinksKnowTheirSilence(t *testing.T) {
	a, b := tcpPair(t, 7*time.Second)
	if a.silence != 7*time.Second || b.silence != 7*time.Second {
		t.Errorf("%v %v", a.silence, b.silence)
	}
	watched.mu.Lock()
	_, there := watched.all[a]
	watched.mu.Unlock()
	a.Close()
	watched.mu.Lock()
	_, still := watched.all[a]
	watched.mu.Unlock()
	if !there || still {
		t.Errorf("watched before Close: %v, after it: %v", there, still)
	}
}

// A peer that does not read, because its process computes or is stopped, is not given up,
// however long that lasts: its kernel says that it has no room.
func TestPeerWithoutRoomIsNotSilent(t *testing.T) {
	a, b := tcpPair(t, 2*time.Second)
	buf := make([]byte, 1<<20)
	for full := 0; full < 3; { // until its buffer and ours are full
		n, err := a.Send([][]byte{buf})
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			full++
			info, err := unix.GetsockoptTCPInfo(a.Handle(), unix.SOL_TCP, unix.TCP_INFO)
			if err != nil {
				t.Fatal(err)
			}
			if info.Snd_wnd > 0 {
				full = 0
			}
		}
	}
	a.hear(0) // whatever the time is
	b.hear(0)
	if n, err := b.Recv([][]byte{buf}); n == 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

func TestMute(t *testing.T) {
	for name, c := range map[string]struct {
		info unix.TCPInfo
		want bool
	}{
		"idle":                     {unix.TCPInfo{Snd_wnd: 9, Last_ack_recv: 60000, Last_data_recv: 60000}, false},
		"unanswered":               {unix.TCPInfo{Snd_wnd: 9, Unacked: 1, Retransmits: 5, Last_ack_recv: 9000, Last_data_recv: 60000}, true},
		"answered lately":          {unix.TCPInfo{Snd_wnd: 9, Unacked: 1, Retransmits: 5, Last_ack_recv: 8999, Last_data_recv: 60000}, false},
		"data came lately":         {unix.TCPInfo{Snd_wnd: 9, Unacked: 1, Retransmits: 5, Last_ack_recv: 9000, Last_data_recv: 10}, false},
		"sent a moment ago":        {unix.TCPInfo{Snd_wnd: 9, Unacked: 1, Last_ack_recv: 60000, Last_data_recv: 60000}, false},
		"no room, and asked again": {unix.TCPInfo{Unacked: 1, Retransmits: 5, Last_ack_recv: 60000, Last_data_recv: 60000}, false},
	} {
		if got := mute(&c.info, 9*time.Second); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestSilenceIsToldAsSuch(t *testing.T) {
	a, _ := tcpPair(t, 7*time.Second)
	for _, errno := range []syscall.Errno{syscall.ETIMEDOUT, syscall.EHOSTUNREACH, syscall.ENETUNREACH} {
		err := a.outcome(&receiving, 0, errno)
		var s *link.SilentError
		if !errors.Is(err, link.ErrSilent) || !errors.Is(err, link.ErrBroken) || !errors.As(err, &s) || s.For != 7*time.Second {
			t.Errorf("%v: %v", errno, err)
		}
	}
	if err := a.outcome(&receiving, 0, syscall.ECONNRESET); errors.Is(err, link.ErrSilent) || !errors.Is(err, link.ErrBroken) {
		t.Errorf("a reset: %v", err)
	}
}

// A reader whose link is given up meanwhile gets the reason, not an end of stream.
func TestReaderOfALinkThatIsGivenUp(t *testing.T) {
	for range 300 {
		a, _ := tcpPair(t, 7*time.Second)
		reads := make(chan struct{})
		done := make(chan error, 1)
		go func() {
			buf := make([]byte, 1)
			for first := true; ; first = false {
				_, err := a.Recv([][]byte{buf})
				if err != nil {
					done <- err
					return
				}
				if first {
					close(reads)
				}
			}
		}()
		<-reads
		a.enter(closed)
		a.giveUp()
		a.leave()
		if err := <-done; !errors.Is(err, link.ErrSilent) {
			t.Fatal(err)
		}
	}
}
