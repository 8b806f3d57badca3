package kernel

import (
	"testing"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// TestFastBoxesKeepTheOrder sends bytes, a message in a box, and bytes. The message is there before
// the bytes are, and must be taken between them.
func TestFastBoxesKeepTheOrder(t *testing.T) {
	k := New(1)
	l := k.NewLink(LinkSpec{Name: "l", Delay: time.Millisecond, Capacity: 100, Boxes: true}, nil)
	a, b := l.Ends[0].Boxed(), l.Ends[1].Boxed()
	if a.TakeFastBoxes(); a.FastBoxRoom(0) != nil {
		t.Fatal("the other side takes no messages")
	}
	b.TakeFastBoxes()
	send := func(s string) {
		if n, err := a.Send([][]byte{[]byte(s)}); n != len(s) || err != nil {
			t.Fatal(n, err)
		}
	}
	send("ab")
	m := a.FastBoxRoom(0)
	m.Tag = 7
	a.PostFastBox(nil)
	send("cd")
	if b.NextFastBox() != nil || b.Ready() {
		t.Error("the message overtakes bytes")
	}
	k.After(time.Second, func() {})
	if err := k.Run(1000, time.Minute, func() bool { return k.Now() >= time.Second }); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 10)
	if n, err := b.Recv([][]byte{buf}); string(buf[:n]) != "ab" || err != nil {
		t.Fatalf("%q, %v", buf[:n], err)
	}
	if n, err := b.Recv([][]byte{buf}); n != 0 || err != nil || !b.Ready() {
		t.Fatalf("bytes overtake the message: %q, %v", buf[:n], err)
	}
	if got := b.NextFastBox(); got == nil || got.Tag != 7 || b.Link().Boxes() != 1 {
		t.Fatalf("%+v", got)
	}
	b.FastBoxTaken(0)
	if n, err := b.Recv([][]byte{buf}); string(buf[:n]) != "cd" || err != nil || b.NextFastBox() != nil {
		t.Errorf("%q, %v", buf[:n], err)
	}
	for range link.FastBoxCount - 1 { // the one that was taken is given back with others
		if a.FastBoxRoom(0) == nil {
			t.Fatal("there is no room")
		}
		a.PostFastBox(nil)
	}
	if a.FastBoxRoom(0) != nil {
		t.Error("there is room for more than there are boxes")
	}
	_ = a.Close()
	if a.FastBoxRoom(0) != nil || b.NextFastBox() == nil {
		t.Error("what was sent is there, and nothing more can be sent")
	}
}
