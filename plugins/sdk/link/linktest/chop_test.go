package linktest_test

import (
	"io"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/link/linktest"
)

func TestChop(t *testing.T) {
	a, b := linktest.Pair(100)
	sizes := []int{1, 0, 3, -1, 100}
	next := func() int {
		n := sizes[0]
		sizes = sizes[1:]
		return n
	}
	ca := linktest.Chop(a, next)
	for _, want := range []int{1, 0, 3, 0, 6} {
		batch := [][]byte{[]byte("ab"), []byte("cdef")}
		if n, err := ca.Send(batch); n != want || err != nil {
			t.Fatalf("Send gives %d, %v; want %d", n, err, want)
		}
	}
	recv(t, b, 100, "aabcabcdef")

	send(t, b, "abcdef", 6)
	sizes = []int{2, 0, 3, 9, 9}
	for _, want := range []string{"ab", "", "cde", "f", ""} {
		recv(t, ca, 10, want)
	}
}

func TestChoppedErrorIsFinal(t *testing.T) {
	a, b := linktest.Pair(100)
	size := 1
	chopped := linktest.Chop(b, func() int { return size })
	a.CloseSend()
	recvError(t, chopped, io.EOF)
	size = 0
	recvError(t, chopped, io.EOF)
	chopped.Close()
	recvError(t, chopped, link.ErrClosed)
	sendError(t, chopped, link.ErrClosed)
}

func TestChopAllocatesNothing(t *testing.T) {
	a, b := linktest.Pair(1000)
	c := linktest.Chop(a, func() int { return 100 })
	batch := [][]byte{make([]byte, 128), make([]byte, 8)}
	if n := testing.AllocsPerRun(100, func() {
		c.Send(batch)
		b.Recv(batch)
	}); n != 0 {
		t.Errorf("%v allocations per message", n)
	}
}
