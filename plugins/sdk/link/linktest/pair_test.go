package linktest_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/link/linktest"
)

func send(t *testing.T, l link.Link, text string, want int) {
	t.Helper()
	if n, err := l.Send([][]byte{[]byte(text)}); n != want || err != nil {
		t.Fatalf("Send of %d bytes gives %d, %v; want %d", len(text), n, err, want)
	}
}

func recv(t *testing.T, l link.Link, room int, want string) {
	t.Helper()
	buf := make([]byte, room)
	if n, err := l.Recv([][]byte{buf}); err != nil || string(buf[:n]) != want {
		t.Fatalf("Recv gives %q, %v; want %q", buf[:n], err, want)
	}
}

func recvError(t *testing.T, l link.Link, want error) {
	t.Helper()
	for range 2 { // errors are final
		if n, err := l.Recv([][]byte{make([]byte, 1)}); n != 0 || !errors.Is(err, want) {
			t.Fatalf("Recv gives %d, %v; want %v", n, err, want)
		}
	}
}

func sendError(t *testing.T, l link.Link, want error) {
	t.Helper()
	for range 2 {
		if n, err := l.Send([][]byte{{1}}); n != 0 || !errors.Is(err, want) {
			t.Fatalf("Send gives %d, %v; want %v", n, err, want)
		}
	}
}

func TestFullPairTakesWhatFits(t *testing.T) {
	a, b := linktest.Pair(4)
	send(t, a, "abcdef", 4)
	send(t, a, "x", 0)
	recv(t, b, 3, "abc")
	send(t, a, "efgh", 3) // as much as there is room for
	recv(t, b, 9, "defg")
	recv(t, b, 9, "")
}

func TestDirectionsAreIndependent(t *testing.T) {
	a, b := linktest.Pair(4)
	send(t, a, "full", 4)
	send(t, b, "back", 4)
	recv(t, a, 9, "back")
	recv(t, b, 9, "full")
}

func TestSendKeepsNothing(t *testing.T) {
	a, b := linktest.Pair(10)
	buf := []byte("before")
	a.Send([][]byte{buf})
	copy(buf, "after!")
	recv(t, b, 10, "before")
}

func TestHalfClose(t *testing.T) {
	a, b := linktest.Pair(10)
	send(t, a, "last", 4)
	if err := a.CloseSend(); err != nil {
		t.Fatal(err)
	}
	sendError(t, a, link.ErrClosed)
	recv(t, b, 10, "last")
	recvError(t, b, io.EOF)
	if n, err := b.Recv(nil); n != 0 || err != nil {
		t.Errorf("Recv without room at the end gives %d, %v", n, err)
	}
	send(t, b, "answer", 6)
	recv(t, a, 10, "answer")
}

func TestCloseLetsPeerReadTheRest(t *testing.T) {
	a, b := linktest.Pair(10)
	send(t, a, "rest", 4)
	send(t, b, "lost", 4)
	for range 2 {
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	recvError(t, a, link.ErrClosed)
	sendError(t, a, link.ErrClosed)
	if err := a.CloseSend(); !errors.Is(err, link.ErrClosed) {
		t.Errorf("CloseSend after Close reports %v", err)
	}
	sendError(t, b, link.ErrBroken)
	recv(t, b, 10, "rest")
	recvError(t, b, io.EOF)
}

func TestBreak(t *testing.T) {
	cause := errors.New("cable cut")
	a, b := linktest.Pair(10)
	send(t, a, "under way", 9)
	b.(*linktest.End).Break(cause)
	a.(*linktest.End).Break(errors.New("too late"))
	for _, l := range []link.Link{a, b} {
		for _, want := range []error{link.ErrBroken, cause} {
			recvError(t, l, want)
			sendError(t, l, want)
		}
		if err := l.CloseSend(); !errors.Is(err, cause) {
			t.Errorf("CloseSend of a broken link reports %v", err)
		}
	}
	a.Close()
	recvError(t, a, link.ErrClosed)
}

func TestBreakWithoutCause(t *testing.T) {
	a, _ := linktest.Pair(1)
	a.(*linktest.End).Break(nil)
	recvError(t, a, link.ErrBroken)
}

func TestArm(t *testing.T) {
	const r, w = link.Readable, link.Writable
	arm := func(l link.Link, want link.Interest, holds bool) {
		t.Helper()
		if l.Arm(want) != holds {
			t.Errorf("Arm(%d) is %t", want, !holds)
		}
	}
	a, b := linktest.Pair(2)
	arm(a, r, false)
	arm(a, w, true)
	arm(a, r|w, true)
	send(t, a, "ab", 2)
	arm(a, w, false)
	arm(b, r, true)
	recv(t, b, 1, "a")
	arm(a, w, true)
	arm(b, r, true)
	recv(t, b, 1, "b")
	arm(b, r, false)
	a.CloseSend()
	arm(b, r, true)
	b.Close()
	arm(a, r, true)
	arm(b, r, true)
}

func TestPairWithoutRoomPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a pair that can never move a byte was made")
		}
	}()
	linktest.Pair(0)
}

// Whatever the calls and their sizes, a pair is two queues of bounded length.
func TestPairIsTwoQueues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.IntRange(1, 9).Draw(t, "capacity")
		var ends [2]link.Link
		ends[0], ends[1] = linktest.Pair(capacity)
		var queue [2][]byte // to each end
		next := byte(0)
		step := func(t *rapid.T) {
			side := rapid.IntRange(0, 1).Draw(t, "side")
			sizes := rapid.SliceOfN(rapid.IntRange(0, 5), 0, 4).Draw(t, "sizes")
			var batch [][]byte
			for _, size := range sizes {
				batch = append(batch, make([]byte, size))
			}
			if rapid.Bool().Draw(t, "send") {
				to := &queue[1-side]
				for _, b := range batch {
					for i := range b {
						b[i] = next
						next++
					}
				}
				all := bytes.Join(batch, nil)
				want := min(len(all), capacity-len(*to))
				if n, err := ends[side].Send(batch); n != want || err != nil {
					t.Fatalf("Send gives %d, %v; want %d", n, err, want)
				}
				*to = append(*to, all[:want]...)
				return
			}
			from := &queue[side]
			want := min(link.Len(batch), len(*from))
			n, err := ends[side].Recv(batch)
			if n != want || err != nil || !bytes.Equal(bytes.Join(batch, nil)[:n], (*from)[:want]) {
				t.Fatalf("Recv gives %d, %v; want %d", n, err, want)
			}
			*from = (*from)[want:]
		}
		t.Repeat(map[string]func(*rapid.T){"step": step})
	})
}

func TestPairAllocatesNothing(t *testing.T) {
	a, b := linktest.Pair(1000)
	batch := [][]byte{make([]byte, 128), make([]byte, 8)}
	if n := testing.AllocsPerRun(100, func() {
		a.Send(batch)
		b.Recv(batch)
	}); n != 0 {
		t.Errorf("%v allocations per message", n)
	}
}
