package mpi

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpierr"
)

// The rows of the point-to-point checklist, each within a site and between two
// whose data is converted. Messages are of derived types wherever that is of
// interest, and mostly longer than a packet.
func TestPointToPointChecklist(t *testing.T) {
	sites := map[string]layout{
		"one site": {procs: 2, dataLen: 100},
		"two sites": {procs: 2, dataLen: 100, client: func(r int) int { return r }, data: func(a, b int) string {
			if a == b {
				return "native"
			}
			return "external32"
		}},
	}
	for _, row := range []struct {
		name string
		body func(t *testing.T, c *Comm) error
	}{
		{"modes", checkModes},
		{"synchronous waits for the receive", checkSynchronous},
		{"buffered", checkBuffered},
		{"buffer attach, detach and flush", checkFlush},
		{"nonblocking", checkNonblocking},
		{"completion families", checkFamilies},
		{"status families", checkStatusFamilies},
		{"persistent", checkPersistent},
		{"request free", checkFree},
		{"probing", checkProbing},
		{"matched probing", checkMatched},
		{"cancel", checkCancel},
		{"PROC_NULL", checkProcNull},
		{"sendrecv", checkSendrecv},
		{"tags", checkTags},
		{"truncation", checkTruncation},
		{"get count and elements", checkCounts},
		{"self", checkSelf},
		{"fairness and progress", checkProgress},
		{"generalized requests", checkGeneralized},
		{"errors", checkErrors},
	} {
		for name, l := range sites {
			t.Run(row.name+"/"+name, func(t *testing.T) { l.run(t, row.body) })
		}
	}
}

// columns is a committed type: every third of 3n-2 float64.
func columns(n int64) *Datatype {
	t, err := datatype.Vector(n, 1, 3, datatype.Basic(datatype.Float64))
	if err != nil {
		panic(err)
	}
	if err := t.Commit(); err != nil {
		panic(err)
	}
	return t
}

// apart is n items of which every third is v, v+1 and so on, the others 0.
func apart(n int, v float64) []float64 {
	g := make([]float64, 3*n-2)
	for i := range n {
		g[3*i] = v + float64(i)
	}
	return g
}

// row is v, v+1 and so on.
func row(n int, v float64) []float64 {
	r := make([]float64, n)
	for i := range r {
		r[i] = v + float64(i)
	}
	return r
}

// class returns an error unless err is of a class.
func class(what string, err error, want mpierr.Class) error {
	if got := ErrorClass(err); got != want {
		return fmt.Errorf("%s: class %v, want %v: %w", what, got, want, err)
	}
	return nil
}

func equal[T comparable](what string, got, want []T) error {
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s: got %v, want %v", what, got, want)
	}
	return nil
}

const columnCount = 40 // 320 bytes of data, more than three packets

func checkModes(t *testing.T, c *Comm) error {
	const n = columnCount
	v := columns(n)
	if c.Rank() == 1 {
		for i := range 8 { // what is sent as columns comes as a row, and the other way round
			in := make([]float64, n)
			st, err := c.Recv(Of(in), 0, i)
			if err := first(err, equal("row", in, row(n, float64(i))), expect("bytes", st.Bytes(), 8*n)); err != nil {
				return err
			}
			back := make([]float64, 3*n-2)
			st, err = c.Recv(Typed(back, 1, v), AnySource, AnyTag)
			if err := first(err, equal("columns", back, apart(n, 100)), expect("tag", st.Tag, 20+i)); err != nil {
				return err
			}
			if k, err := st.Count(v); k != 1 || err != nil {
				return fmt.Errorf("%d items: %w", k, err)
			}
		}
		return nil
	}
	if err := c.in().Process().AttachedBuffer().Attach(1 << 20); err != nil {
		return err
	}
	wait := func(q Request, err error) error {
		if err == nil {
			_, err = q.Wait()
		}
		return err
	}
	for i := range 8 {
		b := Typed(apart(n, float64(i)), 1, v)
		var err error
		switch i {
		case 0:
			err = c.Send(b, 1, i)
		case 1:
			err = c.Ssend(b, 1, i)
		case 2:
			err = c.Bsend(b, 1, i)
		case 3:
			err = c.Rsend(b, 1, i)
		case 4:
			err = wait(c.Isend(b, 1, i))
		case 5:
			err = wait(c.Issend(b, 1, i))
		case 6:
			err = wait(c.Ibsend(b, 1, i))
		case 7:
			err = wait(c.Irsend(b, 1, i))
		}
		if err := first(err, Send(c, row(n, 100), 1, 20+i)); err != nil {
			return err
		}
	}
	_, err := c.in().Process().AttachedBuffer().Detach()
	return err
}

func checkSynchronous(t *testing.T, c *Comm) error {
	v := columns(2) // fits into a packet
	if c.Rank() == 1 {
		in := make([]float64, 2)
		err := first(Send(c, []byte{1}, 0, 2), second(Recv(c, []byte{0}, 0, 3)))
		return first(err, second(c.Recv(Of(in), 0, 1)), equal("data", in, row(2, 5)))
	}
	q, err := c.Issend(Typed(apart(2, 5), 1, v), 1, 1)
	if err := first(err, second(Recv(c, []byte{0}, 1, 2))); err != nil {
		return err
	}
	if done, _, err := q.Test(); done || err != nil {
		return fmt.Errorf("complete before the receive: %w", err)
	}
	return first(Send(c, []byte{1}, 1, 3), second(q.Wait()))
}

func checkNonblocking(t *testing.T, c *Comm) error {
	const n = columnCount
	v, other := columns(n), 1-c.Rank()
	in, out := make([]float64, 2*(3*n)), append(append(apart(n, 3), 0, 0), apart(n, 50)...)
	two, err := datatype.Resized(v, 0, 8*3*n)
	if err := first(err, two.Commit()); err != nil {
		return err
	}
	r, err := c.Irecv(Typed(in, 2, two), other, 5)
	if err != nil {
		return err
	}
	s, err := c.Isend(Typed(out, 2, two), other, 5)
	if err := first(err, two.Free(), v.Free()); err != nil { // which is deferred
		return err
	}
	st, err := r.Wait()
	return first(err, second(s.Wait()), expect("null", r.Null() && s.Null(), true), equal("data", in[:len(out)], out),
		expect("source", st.Source, other), expect("bytes", st.Bytes(), 16*n))
}

func checkProbing(t *testing.T, c *Comm) error {
	const n = columnCount
	v := columns(n)
	if c.Rank() == 1 {
		return c.Send(Typed(apart(n, 1), 1, v), 0, 4)
	}
	st, err := Probe(c, AnySource, AnyTag)
	k, bad := st.Count(v)
	e, worse := st.Elements(v)
	if err := first(err, bad, worse, expect("count", k, 1), expect("elements", e, n), expect("tag", st.Tag, 4)); err != nil {
		return err
	}
	found, again, err := Iprobe(c, st.Source, st.Tag)
	if err := first(err, expect("found", found, true), expect("status", again, st)); err != nil {
		return err
	}
	in := make([]float64, n)
	if err := first(second(c.Recv(Of(in), st.Source, st.Tag)), equal("data", in, row(n, 1))); err != nil {
		return err
	}
	found, _, err = Iprobe(c, AnySource, AnyTag)
	return first(err, expect("found", found, false))
}

func checkMatched(t *testing.T, c *Comm) error {
	const n = columnCount
	v := columns(n)
	if c.Rank() == 1 {
		q, err := c.Isend(Typed(apart(n, 1), 1, v), 0, 4)
		return first(err, c.Send(Of(row(n, 2)), 0, 4), c.Send(Of(row(n, 3)), 0, 4), second(q.Wait()))
	}
	m, st, err := Mprobe(c, 1, 4)
	if err != nil {
		return err
	}
	in := make([]float64, 3*n-2) // a receive that is posted later gets the next message
	if err := first(second(c.Recv(Typed(in, 1, v), 1, 4)), equal("next", in, apart(n, 2))); err != nil {
		return err
	}
	k, err := st.Count(v)
	if err := first(err, expect("count", k, 1), class("a bad buffer", second(m.Recv(Typed(in, -1, v))), mpierr.Count)); err != nil {
		return err
	}
	st, err = m.Recv(Typed(in, 1, v))
	if err := first(err, equal("matched", in, apart(n, 1)), expect("bytes", st.Bytes(), 8*n), class("again", second(m.Recv(Of(in))), mpierr.Request)); err != nil {
		return err
	}
	for m = nil; m == nil && err == nil; {
		m, _, err = Improbe(c, AnySource, AnyTag)
	}
	if err != nil {
		return err
	}
	q, err := m.Irecv(Typed(in, 1, v))
	if err := first(err, second(q.Wait()), equal("matched", in, apart(n, 3))); err != nil {
		return err
	}
	m, st, err = Mprobe(c, ProcNull, 4)
	if err := first(err, expect("no proc", m.NoProc(), true), expect("status", st, procNullStatus)); err != nil {
		return err
	}
	st, err = m.Recv(Typed(in, 1, v))
	var none *Message
	return first(err, expect("status", st, procNullStatus), class("null", second(none.Recv(Of(in))), mpierr.Request), expect("no proc", none.NoProc(), false))
}

func checkProcNull(t *testing.T, c *Comm) error {
	v := columns(columnCount)
	b := Typed(apart(columnCount, 1), 1, v)
	st, err := c.Recv(b, ProcNull, AnyTag)
	if err := first(err, c.Send(b, ProcNull, 0), c.Ssend(b, ProcNull, 0), c.Bsend(b, ProcNull, 0), expect("status", st, procNullStatus)); err != nil {
		return err
	}
	r, err := c.Irecv(b, ProcNull, 0)
	if err != nil {
		return err
	}
	done, st, err := r.Status()
	if err := first(err, expect("done", done, true), expect("status", st, procNullStatus), r.Cancel()); err != nil {
		return err
	}
	st, err = r.Wait()
	if err := first(err, expect("status", st, procNullStatus), expect("null", r.Null(), true)); err != nil {
		return err
	}
	s, err := c.Isend(b, ProcNull, 0)
	if err != nil {
		return err
	}
	if _, st, _ := s.Status(); st != emptyStatus {
		return fmt.Errorf("status of a send: %+v", st)
	}
	st, err = s.Wait()
	if err := first(err, expect("status", st, emptyStatus)); err != nil {
		return err
	}
	st, err = c.Sendrecv(b, ProcNull, 0, b, ProcNull, 0)
	if err := first(err, expect("status", st, procNullStatus)); err != nil {
		return err
	}
	found, st, err := Iprobe(c, ProcNull, 0)
	return first(err, expect("found", found, true), expect("status", st, procNullStatus))
}

func checkSendrecv(t *testing.T, c *Comm) error {
	const n = columnCount
	v, me, other := columns(n), float64(c.Rank()), 1-c.Rank()
	in := make([]float64, 3*n-2)
	st, err := c.Sendrecv(Of(row(n, me)), other, 1, Typed(in, 1, v), other, 1)
	if err := first(err, equal("data", in, apart(n, 1-me)), expect("source", st.Source, other)); err != nil {
		return err
	}
	copy(in, apart(n, 10+me))
	if st, err = c.SendrecvReplace(Typed(in, 1, v), other, 2, other, 2); err == nil {
		err = first(equal("replaced", in, apart(n, 11-me)), expect("bytes", st.Bytes(), 8*n))
	}
	if err != nil {
		return err
	}
	copy(in, apart(n, 20+me))
	q, err := c.IsendrecvReplace(Typed(in, 1, v), other, 3, other, 3)
	if err != nil {
		return err
	}
	st, err = q.Wait()
	if err := first(err, equal("replaced later", in, apart(n, 21-me)), expect("tag", st.Tag, 3), expect("null", q.Null(), true)); err != nil {
		return err
	}
	if c.Rank() == 0 { // and with plain ones
		return first(second(c.Recv(Of(in[:n]), 1, 4)), equal("plain", in[:n], row(n, 1)), c.Send(Typed(apart(n, 0), 1, v), 1, 4))
	}
	clear(in)
	q, err = c.Isendrecv(Of(row(n, 1)), 0, 4, Typed(in, 1, v), 0, 4)
	copied := q
	return first(err, second(q.Wait()), equal("plain", in, apart(n, 0)), class("a copy", second(copied.Wait()), mpierr.Request))
}

func checkTags(t *testing.T, c *Comm) error {
	b := Of([]int32{1})
	for _, tag := range []int{-1, AnyTag, int(c.in().Process().Job.TagUB) + 1} {
		err := first(class("send", c.Send(b, 0, tag), mpierr.Tag), class("isend", second(c.Isend(b, 0, tag)), mpierr.Tag),
			class("init", second(c.SendInit(b, 0, tag)), mpierr.Tag))
		if tag != AnyTag {
			err = first(err, class("recv", second(c.Recv(b, 0, tag)), mpierr.Tag), class("probe", second(Probe(c, 0, tag)), mpierr.Tag),
				class("recv init", second(c.RecvInit(b, 0, tag)), mpierr.Tag))
		}
		if err != nil {
			return err
		}
	}
	st, err := c.Sendrecv(b, 1-c.Rank(), int(c.in().Process().Job.TagUB), Of([]int32{0}), AnySource, AnyTag)
	return first(err, expect("tag", st.Tag, int(c.in().Process().Job.TagUB)))
}

func checkTruncation(t *testing.T, c *Comm) error {
	const n = columnCount
	if c.Rank() == 1 {
		return first(c.Ssend(Of(row(n, 1)), 0, 1), c.Send(Of(row(n, 1)), 0, 1), c.Send(Of([]float64{5}), 0, 2))
	}
	v := columns(n - 3)
	for i := range 2 { // expected and, perhaps, not
		in := make([]float64, 3*n-2)
		st, err := c.Recv(Typed(in, 1, v), AnySource, 1)
		want := append(apart(n-3, 1), make([]float64, 9)...)
		k, bad := st.Count(v)
		if err := first(class("too long", err, mpierr.Truncate), bad, equal("data", in, want), expect("count", k, 1)); err != nil {
			return fmt.Errorf("%d: %w", i, err)
		}
	}
	in := []float64{0}
	return first(second(c.Recv(Of(in), 1, 2)), expect("the message after it", in[0], 5))
}

func checkCounts(t *testing.T, c *Comm) error {
	pair, err := datatype.Struct([]int64{1, 1}, []int64{0, 8}, []*Datatype{datatype.Basic(datatype.Int16), datatype.Basic(datatype.Float64)})
	none, bad := datatype.Contiguous(0, pair)
	if err := first(err, bad, pair.Commit(), none.Commit()); err != nil {
		return err
	}
	part, err := datatype.Resized(datatype.Basic(datatype.Int16), 0, 2)
	if err := first(err, part.Commit()); err != nil {
		return err
	}
	buf := make([]uint64, 10)
	if c.Rank() == 1 { // two pairs and the first half of a third
		two, err := datatype.Struct([]int64{2, 1}, []int64{0, 32}, []*Datatype{pair, part})
		return first(err, two.Commit(), c.Send(Typed(buf, 1, two), 0, 1), c.Send(Typed(buf, 2, pair), 0, 1), c.Send(Typed(buf, 0, pair), 0, 1))
	}
	for i, want := range []struct{ count, elements int }{{Undefined, 5}, {2, 4}, {0, 0}} {
		st, err := c.Recv(Typed(buf, 4, pair), 1, 1)
		n, bad := st.Count(pair)
		e, worse := st.Elements(pair)
		z, worst := st.Count(none)
		zero := Undefined
		if want.elements == 0 {
			zero = 0
		}
		if err := first(err, bad, worse, worst, expect("count", n, want.count), expect("elements", e, want.elements), expect("of nothing", z, zero)); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
	}
	_, err = emptyStatus.Count(nil)
	return class("no type", err, mpierr.Type)
}

func checkSelf(t *testing.T, c *Comm) error {
	const n = columnCount
	v, me := columns(n), c.Rank()
	in := make([]float64, n)
	r, err := c.Irecv(Of(in), me, 1)
	if err := first(err, c.Send(Typed(apart(n, 1), 1, v), me, 1), second(r.Wait()), equal("posted", in, row(n, 1))); err != nil {
		return err
	}
	s, err := c.Isend(Typed(apart(n, 2), 1, v), me, 2)
	if err != nil {
		return err
	}
	back := make([]float64, 3*n-2)
	st, err := Probe(c, me, 2)
	k, bad := st.Count(v)
	if err := first(err, bad, expect("probed", k, 1), second(c.Recv(Typed(back, 1, v), me, 2)), second(s.Wait()), equal("not posted", back, apart(n, 2))); err != nil {
		return err
	}
	if s, err = c.Issend(Of([]float64{3}), me, 3); err != nil {
		return err
	}
	if done, _, err := s.Test(); done || err != nil {
		return fmt.Errorf("synchronous to itself, without a receive: %v %w", done, err)
	}
	return first(second(c.Recv(Of(in[:1]), AnySource, AnyTag)), second(s.Wait()), expect("synchronous", in[0], 3))
}

// checkProgress: receives are matched in the order of their posting, and a pair
// goes on while its procs are in other calls.
func checkProgress(t *testing.T, c *Comm) error {
	const n = columnCount
	v, other := columns(n), 1-c.Rank()
	ins := [2][]float64{make([]float64, n), make([]float64, n)}
	a, err := c.Irecv(Of(ins[0]), AnySource, AnyTag)
	if err != nil {
		return err
	}
	b, err := c.Irecv(Of(ins[1]), other, 1)
	if err != nil {
		return err
	}
	for i := range 2 {
		q, err := c.Isend(Typed(apart(n, float64(i)), 1, v), other, 1)
		if err := first(err, q.Free()); err != nil {
			return err
		}
	}
	if err := Barrier(c); err != nil { // nobody waits for the messages
		return err
	}
	return first(second(b.Wait()), equal("second", ins[1], row(n, 1)), second(a.Wait()), equal("first", ins[0], row(n, 0)))
}

func checkErrors(t *testing.T, c *Comm) error {
	v, loose := columns(4), must(datatype.Vector(2, 1, 2, datatype.Basic(datatype.Int32)))
	freed := columns(2)
	if err := freed.Free(); err != nil {
		return err
	}
	mem := apart(4, 0)
	good := Typed(mem, 1, v)
	var none *Comm
	for _, x := range []struct {
		name string
		b    Buffer
		rank int
		c    *Comm
		want mpierr.Class
	}{
		{"rank too high", good, 2, c, mpierr.Rank},
		{"negative rank", good, -7, c, mpierr.Rank},
		{"negative count", Typed(mem, -1, v), 0, c, mpierr.Count},
		{"null type", Typed(mem, 1, nil), 0, c, mpierr.Type},
		{"uncommitted type", Typed(mem, 1, loose), 0, c, mpierr.Type},
		{"freed type", Typed(mem, 1, freed), 0, c, mpierr.Type},
		{"null buffer", At(nil, 1, v), 0, c, mpierr.Buffer},
		{"no memory", Typed([]byte(nil), 1, v), 0, c, mpierr.Buffer},
		{"items outside of the slice", Typed(mem[:9], 1, v), 0, c, mpierr.Buffer},
		{"in place", InPlace, 0, c, mpierr.Buffer},
		{"null communicator", good, 0, none, mpierr.Comm},
	} {
		if x.c == nil && !Initialized() {
			x.want = mpierr.Other
		}
		for name, err := range everyCall(x.c, x.b, x.rank) {
			if err := class(x.name+": "+name, err, x.want); err != nil {
				return err
			}
		}
	}
	empty := Typed([]byte(nil), 0, v) // no memory is needed for nothing
	return first(class("source", second(c.Recv(good, 9, 0)), mpierr.Rank), second(c.Sendrecv(empty, 1-c.Rank(), 0, empty, 1-c.Rank(), 0)),
		class("statuses", Waitall(make([]Request, 2), make([]Status, 1)), mpierr.Arg))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// everyCall returns the errors of all calls with a Buffer and a rank.
func everyCall(c *Comm, b Buffer, rank int) map[string]error {
	return map[string]error{
		"send": c.Send(b, rank, 0), "ssend": c.Ssend(b, rank, 0), "bsend": c.Bsend(b, rank, 0), "rsend": c.Rsend(b, rank, 0),
		"isend": second(c.Isend(b, rank, 0)), "issend": second(c.Issend(b, rank, 0)),
		"ibsend": second(c.Ibsend(b, rank, 0)), "irsend": second(c.Irsend(b, rank, 0)),
		"recv": second(c.Recv(b, rank, 0)), "irecv": second(c.Irecv(b, rank, 0)),
		"sendrecv": second(c.Sendrecv(b, rank, 0, b, rank, 0)), "replace": second(c.SendrecvReplace(b, rank, 0, rank, 0)),
		"isendrecv": second(c.Isendrecv(b, rank, 0, b, rank, 0)), "ireplace": second(c.IsendrecvReplace(b, rank, 0, rank, 0)),
		"send init": second(c.SendInit(b, rank, 0)), "ssend init": second(c.SsendInit(b, rank, 0)),
		"bsend init": second(c.BsendInit(b, rank, 0)), "rsend init": second(c.RsendInit(b, rank, 0)), "recv init": second(c.RecvInit(b, rank, 0)),
	}
}

var errOwn = errors.New("the program's own")
