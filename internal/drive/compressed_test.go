package drive

import (
	"testing"

	"github.com/openimpi/impi/core/compress"
	"github.com/openimpi/impi/plugins/sdk/link/linktest"
)

// TestReads: what a compressed link has taken from the link below is read beyond the number of
// reads, and no more.
func TestReads(t *testing.T) {
	x, y := linktest.Pair(1 << 16)
	var a, b Endpoint
	from, to := a.Compress(x, compress.Config{Min: 1 << 20}), b.Compress(y, compress.Config{Min: 1 << 20})
	if _, err := from.Send([][]byte{make([]byte, 1000)}); err != nil {
		t.Fatal(err)
	}
	if n, err := to.Recv([][]byte{make([]byte, 10)}); n != 10 || err != nil || !b.Buffered() {
		t.Fatal(n, err)
	}
	if _, err := from.Send([][]byte{make([]byte, 500)}); err != nil {
		t.Fatal(err)
	}
	if !b.Reads(0) || !b.Reads(MaxReads-1) || !b.Reads(MaxReads) {
		t.Fatal("what the poll set does not see would be left")
	}
	if n, err := to.Recv([][]byte{make([]byte, 2000)}); n != 990 || err != nil {
		t.Errorf("%d, %v: the link below was read, too", n, err)
	}
	if b.Reads(MaxReads) || (&Endpoint{}).Reads(MaxReads) {
		t.Error("others would not have their turn")
	}
}
