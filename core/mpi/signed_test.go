package mpi

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/proc"
)

// signedLayouts are jobs of procs that compare what they send and receive.
var signedLayouts = map[string]layout{
	"sockets":         {procs: 2, check: true},
	"memory":          {procs: 2, check: true, link: rings(64 << 10)},
	"two sites":       {procs: 2, check: true, client: func(r int) int { return r }, data: sameOrder},
	"two byte orders": {procs: 2, check: true, client: func(r int) int { return r }, data: otherOrder},
	"small packets":   {procs: 2, check: true, dataLen: 10},
	"the draft":       {procs: 2, check: true, dialect: wire.Draft},
}

// otherOrder has everybody but itself swap bytes.
func otherOrder(from, to int) string {
	switch {
	case from == to:
		return ""
	case datatype.HostOrder() == datatype.NativeBE:
		return "native-le"
	}
	return "native-be"
}

// signedCase is a send and a receive.
type signedCase struct {
	name       string
	send       func() Buffer
	recv       func() Buffer
	sent, want string // in the error; "": they match
}

func matches() []signedCase {
	i32, f64 := TypeOf[int32](), TypeOf[float64]()
	plain, packed := datatype.Basic(datatype.Byte), datatype.Basic(datatype.Packed)
	pair := made(TypeStruct([]int64{1, 1}, []int64{0, 8}, []*Datatype{i32, f64}))
	riap := made(TypeStruct([]int64{1, 1}, []int64{8, 0}, []*Datatype{i32, f64})) // other places
	swapped := made(TypeStruct([]int64{1, 1}, []int64{0, 8}, []*Datatype{f64, i32}))
	strided := made(TypeVector(3, 1, 2, i32))
	mem := func(count int, t *Datatype) func() Buffer {
		return func() Buffer { return Typed(make([]byte, 4096), count, t) }
	}
	return []signedCase{
		{"the same", func() Buffer { return Of(make([]int32, 3)) }, func() Buffer { return Of(make([]int32, 3)) }, "", ""},
		{"room for more", mem(3, i32), mem(100, i32), "", ""},
		{"nothing", mem(0, i32), mem(4, f64), "", ""},
		{"another layout", mem(3, i32), mem(1, strided), "", ""},
		{"two layouts", mem(1, strided), mem(2, strided), "", ""},
		{"another order in memory", mem(5, pair), mem(5, riap), "", ""},
		{"a part of an item", mem(1, i32), mem(3, pair), "", ""},
		{"packed to ints", mem(12, packed), mem(3, i32), "", ""},
		{"ints to packed", mem(3, i32), mem(12, packed), "", ""},
		{"many", mem(500, i32), mem(500, i32), "", ""},
		{"another type", mem(3, i32), mem(3, TypeOf[float32]()), "3 x int32", "3 x float32"},
		{"another sign", mem(1, TypeOf[uint16]()), mem(4, TypeOf[int16]()), "1 x uint16", "4 x int16"},
		{"bytes", mem(12, plain), mem(3, i32), "12 x byte", "3 x int32"},
		{"to bytes", mem(3, i32), mem(12, plain), "3 x int32", "12 x byte"},
		{"another order", mem(2, pair), mem(2, swapped), "4 elements of several types", "float64, int32, float64, int32"},
		{"a part of another item", mem(3, i32), mem(9, pair), "3 x int32", "int32, float64, int32, float64, int32, float64, int32, float64 and so on, 18 in all"},
		{"many of another type", mem(500, i32), mem(500, TypeOf[float32]()), "500 x int32", "500 x float32"},
	}
}

// signedWays are how a message is sent from rank 0 to rank 1 of c, and received.
var signedWays = []struct {
	name string
	do   func(c *Comm, e *signedCase) error
}{
	{"Send, Recv", func(c *Comm, e *signedCase) error {
		if c.Rank() == 0 {
			return c.Send(e.send(), 1, 5)
		}
		_, err := c.Recv(e.recv(), 0, 5)
		return err
	}},
	{"Issend, Recv from anybody", func(c *Comm, e *signedCase) error {
		if c.Rank() == 0 {
			q, err := c.Issend(e.send(), 1, 5)
			return first(err, complete(&q))
		}
		_, err := c.Recv(e.recv(), AnySource, AnyTag)
		return err
	}},
	{"Isend, Irecv, Waitall", func(c *Comm, e *signedCase) error {
		var q Request
		var err error
		if c.Rank() == 0 {
			q, err = c.Isend(e.send(), 1, 5)
		} else {
			q, err = c.Irecv(e.recv(), 0, 5)
		}
		sts := make([]Status, 1)
		if err == nil && Waitall([]Request{q}, sts) != nil {
			err = sts[0].Err
		}
		return err
	}},
	{"Sendrecv", func(c *Comm, e *signedCase) error {
		if c.Rank() == 0 {
			_, err := c.Sendrecv(e.send(), 1, 5, Of([]byte{}), ProcNull, 0)
			return err
		}
		_, err := c.Sendrecv(Of([]byte{}), ProcNull, 0, e.recv(), 0, 5)
		return err
	}},
	{"SendrecvReplace, Mprobe, Mrecv", func(c *Comm, e *signedCase) error {
		if c.Rank() == 0 {
			b := e.send()
			_, err := c.SendrecvReplace(b, 1, 5, ProcNull, 0)
			return err
		}
		m, _, err := Mprobe(c, 0, 5)
		if err == nil {
			_, err = m.Recv(e.recv())
		}
		return err
	}},
	{"to itself", func(c *Comm, e *signedCase) error {
		if c.Rank() == 0 {
			return nil
		}
		q, err := c.Isend(e.send(), 1, 5)
		if err != nil {
			return err
		}
		_, err = c.Recv(e.recv(), 1, 5)
		return first(complete(&q), err)
	}},
	{"persistent", func(c *Comm, e *signedCase) error {
		var q Request
		var err error
		if c.Rank() == 0 {
			q, err = c.SendInit(e.send(), 1, 5)
		} else {
			q, err = c.RecvInit(e.recv(), 0, 5)
		}
		if err = first(err, q.Start()); err == nil {
			_, err = q.Wait()
		}
		return first(err, q.Free())
	}},
}

// TestSignatures compares what is sent with what it is received as, in all ways there are.
func TestSignatures(t *testing.T) {
	for where, l := range signedLayouts {
		t.Run(where, func(t *testing.T) {
			l.run(t, func(_ *testing.T, c *Comm) error {
				for _, e := range matches() {
					for _, way := range signedWays {
						if err := e.judge(c, way.do(c, &e)); err != nil {
							return fmt.Errorf("%s, %s: %w", e.name, way.name, err)
						}
					}
				}
				return Barrier(c)
			})
		})
	}
}

// judge reports whether err is what the two ends deserve.
func (e *signedCase) judge(c *Comm, err error) error {
	if c.Rank() == 0 || e.sent == "" {
		return err
	}
	text := fmt.Sprint(err)
	if !errors.Is(err, ErrSignature) || ErrorClass(err) != mpierr.Type ||
		!strings.Contains(text, "sent "+e.sent+" with tag 5") || !strings.HasSuffix(text, "for "+e.want) || !strings.Contains(text, "rank ") {
		return fmt.Errorf("got %w of class %v, want %s for %s", err, ErrorClass(err), e.sent, e.want)
	}
	return nil
}

// TestSignedDataArrive stores what has come though it is not what was expected, and in order.
func TestSignedDataArrive(t *testing.T) {
	layout{procs: 2, check: true}.run(t, func(_ *testing.T, c *Comm) error {
		if c.Rank() == 0 {
			return first(Send(c, []int32{1, 2, 3}, 1, 5), Send(c, []int32{4}, 1, 5), Send(c, make([]int32, 9), 1, 5))
		}
		var in [4]uint32
		st, err := Recv(c, in[:], 0, 5)
		err = first(expect("mismatch", errors.Is(err, ErrSignature), true), expect("size", st.Bytes(), 12), expect("data", in, [4]uint32{1, 2, 3}))
		var next [1]int32
		_, e := Recv(c, next[:], 0, 5)
		_, cut := Recv(c, in[:], 0, 5)
		return first(err, e, expect("next", next[0], 4), expect("too long", errors.Is(cut, message.ErrTruncate), true))
	})
}

// TestUnsignedIsNotCompared leaves programs alone that have not asked for it, and messages of procs
// that have not.
func TestUnsignedIsNotCompared(t *testing.T) {
	for where, l := range map[string]layout{
		"nobody checks": {procs: 2},
		"another library": {procs: 2, check: true, foreign: true, client: func(r int) int { return r }, data: func(from, to int) string {
			if from != to {
				return "external32"
			}
			return ""
		}},
	} {
		t.Run(where, func(t *testing.T) {
			l.run(t, func(_ *testing.T, c *Comm) error {
				if c.Rank() == 0 {
					return Send(c, []int32{1, 2, 3}, 1, 5)
				}
				var in [3]float32
				_, err := Recv(c, in[:], 0, 5)
				return err
			})
		})
	}
}

// TestSignedNumbers refuses numbers of elements that cannot be, which come from others.
func TestSignedNumbers(t *testing.T) {
	layout{procs: 2, check: true}.run(t, func(_ *testing.T, c *Comm) error {
		bits := TypeOf[int32]().Signature(3).Bits()
		counts := []int64{-1, -1 << 63, 1<<63 - 1, 4, 2}
		if c.Rank() == 0 {
			for _, n := range counts {
				r := c.in().Process().Isend(1, c.in().Envelope(5), message.Standard, &proc.Payload{Mem: make([]byte, 12), Count: n, Dtype: bits}, true)
				c.in().Process().Wait(r)
				if err := c.in().Process().End(r, nil); err != nil {
					return err
				}
			}
			return nil
		}
		var in [3]int32
		for _, n := range counts {
			if _, err := Recv(c, in[:], 0, 5); !errors.Is(err, ErrSignature) {
				return fmt.Errorf("%d elements: %w", n, err)
			}
		}
		return nil
	})
}
