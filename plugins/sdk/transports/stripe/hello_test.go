package stripe

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/transports"
)

func TestHello(t *testing.T) {
	for i, h := range hellos(MaxConnections) {
		var b bytes.Buffer
		if err := h.say(&b); err != nil {
			t.Fatal(err)
		}
		if got, err := hear(&b); err != nil || got != h || got.index != i || b.Len() != 0 {
			t.Errorf("said %v, heard %v, %v, and %d bytes more", h, got, err, b.Len())
		}
	}
	if hellos(2)[0].id == hellos(2)[0].id {
		t.Error("two stripes have one number")
	}
}

func FuzzHear(f *testing.F) {
	var b bytes.Buffer
	_ = hellos(2)[1].say(&b)
	good := b.Bytes()
	f.Add(good)
	for at, to := range map[int]byte{0: 'x', 4: 2, 5: 2, 6: 0, 7: 1} {
		bad := bytes.Clone(good)
		bad[at] = to
		if _, err := hear(bytes.NewReader(bad)); !errors.Is(err, ErrProtocol) {
			f.Errorf("byte %d is %d: %v", at, to, err)
		}
		f.Add(bad)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := hear(bytes.NewReader(data))
		if err != nil {
			if !errors.Is(err, ErrProtocol) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
				t.Errorf("%x: %v", data, err)
			}
			return
		}
		var b bytes.Buffer
		if _ = h.say(&b); !bytes.Equal(b.Bytes(), data[:helloSize]) {
			t.Errorf("%x is heard as %v", data, h)
		}
	})
}

// named is a connection that is told apart from others.
type named struct {
	transports.Conn
	i int
}

func TestGroups(t *testing.T) {
	var g Groups
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const count = 6
	type result struct {
		conns []transports.Conn
		err   error
	}
	results := make(chan result, 2*count)
	join := func(ctx context.Context, h hello) {
		c, err := g.join(ctx, h, &named{i: h.index})
		results <- result{c, err}
	}
	whole, cut := hellos(count), hellos(count)
	for i := range count {
		go join(ctx, whole[count-1-i])
		if i > 0 {
			go join(ctx, cut[i])
		}
	}
	var all []transports.Conn
	for range count { // of the whole one
		r := <-results
		if r.err != nil || r.conns != nil && all != nil {
			t.Fatalf("%v, %v", r.conns, r.err)
		}
		if r.conns != nil {
			all = r.conns
		}
	}
	for i, c := range all {
		if c.(*named).i != i {
			t.Errorf("connection %d is in place %d", c.(*named).i, i)
		}
	}
	cancel()
	for range count - 1 {
		if r := <-results; r.conns != nil || !errors.Is(r.err, ErrIncomplete) {
			t.Errorf("of a stripe that is not whole: %v, %v", r.conns, r.err)
		}
	}
	if len(all) != count || len(g.groups) != 0 {
		t.Errorf("%d connections came, and %d groups are left", len(all), len(g.groups))
	}
}

// Who says what somebody else has said, or something else about the stripe, is refused alone.
func TestGroupsRefuse(t *testing.T) {
	var g Groups
	hellos := hellos(3)
	waits := make(chan error, 2)
	for i := range 2 {
		go func() {
			_, err := g.join(t.Context(), hellos[i], &named{i: i})
			waits <- err
		}()
	}
	for {
		g.mu.Lock()
		x := g.groups[hellos[0].id]
		there := x != nil && x.missing == 1
		g.mu.Unlock()
		if there {
			break
		}
	}
	for _, bad := range []hello{hellos[1], {index: 1, count: 2, id: hellos[0].id}, {index: 3, count: 4, id: hellos[0].id}} {
		if _, err := g.join(t.Context(), bad, &named{}); !errors.Is(err, ErrProtocol) {
			t.Errorf("connection %d of %d: %v", bad.index, bad.count, err)
		}
	}
	if c, err := g.join(t.Context(), hellos[2], &named{i: 2}); err != nil || len(c) != 3 {
		t.Errorf("the last one gets %v, %v", c, err)
	}
	for range 2 {
		if err := <-waits; err != nil {
			t.Error(err)
		}
	}
}
