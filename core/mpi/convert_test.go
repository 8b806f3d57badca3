package mpi

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/openimpi/impi/core/message"
)

// mixed is a job of two sites: inside a site memory as it is, between them rep.
func mixed(rep string) layout {
	client := func(r int) int { return r % 2 }
	return layout{procs: 4, dataLen: 100, client: client, data: func(a, b int) string {
		if client(a) == client(b) {
			return "native"
		}
		return rep
	}}
}

func TestForeignRepresentations(t *testing.T) {
	for _, rep := range []string{"external32", "native-le", "native-be", "native-x86"} {
		t.Run(rep, func(t *testing.T) {
			mixed(rep).run(t, func(t *testing.T, c *Comm) error {
				return first(
					around(c, 1, int16(-2)), around(c, 2, int32(1<<30)), around(c, 3, int64(-1<<60)), around(c, 4, -5),
					around(c, 5, uint8(200)), around(c, 6, 1.5), around(c, 7, float32(-0.25)), around(c, 8, complex(1, -2)),
					around(c, 9, true), around(c, 10, Pair[float64]{Value: 2.5, Index: 7}), around(c, 11, Pair[int16]{Value: -3, Index: 1<<31 - 1}))
			})
		})
	}
}

// around sends v to each rank and receives it from all: by name, by wildcard,
// without blocking, and after a probe.
func around[T Type](c *Comm, tag int, v T) error {
	out := make([]T, 33)
	for i := range out {
		out[i] = v
	}
	var reqs []Request
	for r := range c.Size() {
		q, err := Isend(c, out, r, tag)
		if err != nil {
			return err
		}
		reqs = append(reqs, q)
	}
	for i := range c.Size() {
		in := make([]T, 40)
		st, err := receive(c, i, in, tag)
		if err != nil {
			return err
		}
		n, whole := Count[T](st)
		if n != 33 || !whole || in[0] != v || in[32] != v {
			return fmt.Errorf("%T from %d: %d elements (%v), %v", v, st.Source, n, whole, in[:2])
		}
	}
	return Waitall(reqs, nil)
}

func receive[T Type](c *Comm, how int, in []T, tag int) (Status, error) {
	switch how {
	case 0:
		return Recv(c, in, AnySource, tag)
	case 1:
		q, err := Irecv(c, in, AnySource, tag)
		if err != nil {
			return Status{}, err
		}
		return q.Wait()
	case 2:
		st, err := Probe(c, AnySource, tag)
		if err != nil {
			return Status{}, err
		}
		n, whole := Count[T](st)
		if n != 33 || !whole {
			return Status{}, fmt.Errorf("probed %d elements of %T (%v)", n, in[0], whole)
		}
		return Recv(c, in, st.Source, tag)
	}
	m, _, err := Mprobe(c, AnySource, tag)
	if err != nil {
		return Status{}, err
	}
	return Mrecv(m, in)
}

// A buffer is too small in elements, whatever the size of an element on the way.
func TestTruncationOfForeignElements(t *testing.T) {
	mixed("external32").run(t, func(t *testing.T, c *Comm) error {
		out := make([]Pair[float64], 15)
		for i := range out {
			out[i] = Pair[float64]{Value: 0.5, Index: int32(i)}
		}
		if c.Rank() > 0 {
			return Send(c, out, 0, 0)
		}
		for src := 1; src < c.Size(); src++ { // of the own site and of the other
			in := make([]Pair[float64], 13)
			st, err := Recv(c, in[:12], src, 0)
			n, whole := Count[Pair[float64]](st)
			if !errors.Is(err, message.ErrTruncate) || n != 12 || !whole || !slices.Equal(in[:12], out[:12]) || in[12] != (Pair[float64]{}) {
				return fmt.Errorf("from %d: %d elements (%v): %w", src, n, whole, err)
			}
		}
		return nil
	})
}
