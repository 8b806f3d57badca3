package fabric_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports/fabric"
)

// slow is a connection whose Recv is in progress until the test lets it return.
type slow struct {
	fabric.Conn
	inside    atomic.Bool
	entered   chan struct{}
	leave     chan struct{}
	once      sync.Once
	unordered atomic.Bool // Close was called meanwhile
	closes    atomic.Int32
}

func (s *slow) Recv(b [][]byte) (int, error) {
	s.inside.Store(true)
	s.once.Do(func() { close(s.entered) })
	<-s.leave
	s.inside.Store(false)
	return s.Conn.Recv(b)
}

func (s *slow) Close() error {
	if s.closes.Add(1); s.inside.Load() {
		s.unordered.Store(true)
	}
	return s.Conn.Close()
}

// A plugin that ends a link while it uses the connection closes that when it does not use it any
// more, and the proc's side when nothing is read any more.
func TestEndedWhileItIsUsed(t *testing.T) {
	s := &slow{entered: make(chan struct{}), leave: make(chan struct{})}
	_, b := pair(t, 1, 0, func(c fabric.Conn) fabric.Conn {
		s.Conn = c
		return s
	})
	<-s.entered
	b.pump.Close()
	if !b.Alive() {
		t.Error("the proc takes all reads for ended while the connection is used")
	}
	close(s.leave)
	if err := <-b.ended; err == nil {
		t.Error("it has ended in order")
	}
	if s.unordered.Load() || s.closes.Load() != 1 {
		t.Errorf("Close was called %d times, during Recv: %v", s.closes.Load(), s.unordered.Load())
	}
	if _, err := b.Send([][]byte{{1}}); !errors.Is(err, link.ErrBroken) {
		t.Error(err)
	}
}

// A pump that is closed before it runs closes both sides.
func TestEndedBeforeItRuns(t *testing.T) {
	s := &slow{leave: make(chan struct{})}
	_, b := pair(t, 1, 0, nil)
	s.Conn = b.conn
	b.pump.Close()
	<-b.ended
	pump, fds, err := fabric.NewPump(s, b.cache)
	if err != nil {
		t.Fatal(err)
	}
	closeAll(fds)
	if pump.Close(); s.closes.Load() != 1 {
		t.Errorf("Close was called %d times", s.closes.Load())
	}
	if err := pump.Run(); err == nil || s.closes.Load() != 1 {
		t.Errorf("%v, Close was called %d times", err, s.closes.Load())
	}
}
