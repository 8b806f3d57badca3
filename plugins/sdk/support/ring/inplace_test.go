package ring

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
)

var _ link.Memory = (*Link)(nil)

// Bytes that are written and read in place and bytes that are copied are one stream, in
// whatever order the two take turns.
func TestInPlaceAndCopiedKeepTheirOrder(t *testing.T) {
	a, b := pair(t, minSize)
	data := pattern(40 * minSize)
	var got []byte
	for i, sent := 0, 0; len(got) < len(data); i++ {
		n := min(1+i%150, len(data)-sent)
		if room := a.Reserve(n); room != nil && i%3 != 0 {
			copy(room, data[sent:])
			sent += n
		} else if room == nil {
			k, err := a.Send([][]byte{data[sent : sent+n]})
			if err != nil {
				t.Fatal(err)
			}
			sent += k
		} else {
			copy(room, data[sent:])
			sent += n
			a.Commit()
		}
		if i%2 == 0 {
			continue
		}
		in := b.Peek()
		if i%5 == 0 {
			buf := make([]byte, 100)
			k, err := b.Recv([][]byte{buf})
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, buf[:k]...)
			continue
		}
		k := len(in) - len(in)/4
		got = append(got, in[:k]...)
		b.Discard(k)
		if sent == len(data) {
			a.Commit()
		}
	}
	if !bytes.Equal(got, data) {
		t.Error("the bytes are not those that were sent")
	}
}

func TestReservedBytesAreNotThereBeforeCommit(t *testing.T) {
	a, b := pair(t, minSize)
	copy(a.Reserve(3), "abc")
	if in := b.Peek(); len(in) != 0 {
		t.Errorf("%q is there already", in)
	}
	copy(a.Reserve(2), "de")
	if !a.Commit() || a.Commit() {
		t.Error("one Commit of two has something to send")
	}
	if in := b.Peek(); string(in) != "abcde" {
		t.Errorf("got %q", in)
	}
}

func TestReserveRefuses(t *testing.T) {
	a, b := pair(t, minSize)
	if a.Reserve(minSize+1) != nil {
		t.Error("more than the ring")
	}
	a.Reserve(minSize - 10)
	if a.Reserve(20) != nil {
		t.Error("over the end of the ring")
	}
	a.Commit()
	b.Discard(len(b.Peek()))
	if a.Reserve(10) == nil || a.Reserve(20) == nil {
		t.Error("room that became free, up to the end and from the beginning")
	}
	a.CloseSend()
	if a.Reserve(1) != nil {
		t.Error("after the end")
	}
	b.Close()
	if b.Peek() != nil || b.Reserve(1) != nil {
		t.Error("after Close")
	}
}

// An invalid head makes Peek return nothing; Recv reports what is wrong.
func TestPeekOfHostileNumbers(t *testing.T) {
	_, b := pair(t, minSize)
	b.in.b.head.Store(minSize + 1)
	if in := b.Peek(); in != nil {
		t.Errorf("%d bytes", len(in))
	}
	if _, err := b.Recv([][]byte{make([]byte, 1)}); err == nil {
		t.Error("no error")
	}
}

func TestCommitWakesTheReader(t *testing.T) {
	a, b := pair(t, minSize)
	if b.Arm(link.Readable) {
		t.Fatal("there is nothing")
	}
	a.Reserve(1)
	a.Commit()
	if !ready(t, b, unix.POLLIN) {
		t.Error("it sleeps on")
	}
}
