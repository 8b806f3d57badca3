package transporttest

import (
	"bytes"
	"context"
	"fmt"

	"github.com/openimpi/impi/plugins/sdk/link"
)

var dataCases = []Case{
	{"T-ORDER-01", "first-bytes", "bytes that the dialling side sends at once arrive, and so does an answer", firstBytes},
	{"T-ORDER-02", "random-sizes", "bytes arrive unchanged and in order however both sides cut them", randomSizes},
	{"T-ORDER-03", "byte-by-byte", "a stream of single bytes arrives", byteByByte},
	{"T-ORDER-04", "batches", "a batch of many slices, some empty, is one sequence, for Send and for Recv", batches},
	{"T-ORDER-05", "no-bytes", "calls without bytes or room move nothing and report nothing", noBytes},
	{"T-ORDER-06", "duplex", "both ends send and receive at the same time, each with two goroutines", duplex},
	{"T-ORDER-07", "links-apart", "bytes of one link do not appear on another one", linksApart},
}

func firstBytes(e *env) {
	ln := e.listen()
	ctx, stop := context.WithCancel(e.context())
	defer stop()
	e.together(func() error {
		l, err := e.dial(ctx, ln.Address())
		if err != nil {
			stop() // no peer comes
			return err
		}
		defer l.Close()
		if err := e.send(l, []byte("hello")); err != nil {
			return err
		}
		got := make([]byte, 5)
		if err := e.recv(l, got); err != nil {
			return err
		}
		if string(got) != "HELLO" {
			return fmt.Errorf("the answer is %q", got)
		}
		return nil
	}, func() error {
		l, err := ln.Accept(ctx)
		if err != nil {
			return err
		}
		e.Cleanup(func() { l.Close() })
		got := make([]byte, 5)
		if err := e.recv(l, got); err != nil {
			return err
		}
		return e.send(l, bytes.ToUpper(got))
	})
}

func randomSizes(e *env) {
	for i, size := range []int{3, 200, 5000, 100000} {
		a, b := e.pair()
		total := int64(size) * 60
		cuts := func(n uint64) cut { return cut{seeded(uint64(i) + n), 7, size} }
		sendAB, recvAB := e.stream(a, b, total, cuts(10), cuts(20))
		e.together(sendAB, recvAB)
		sendBA, recvBA := e.stream(b, a, total, cuts(30), cuts(40))
		e.together(sendBA, recvBA)
	}
}

func byteByByte(e *env) {
	a, b := e.pair()
	e.together(both(e.stream(a, b, 3000, cut{nil, 1, 1}, cut{nil, 1, 1}))...)
}

func both(f, g func() error) []func() error { return []func() error{f, g} }

func batches(e *env) {
	a, b := e.pair()
	for _, slices := range []int{1, 2, 63, 64, 65, 1023, 1024, 1025, 3000} {
		var out, in [][]byte
		var sent, got bytes.Buffer
		for i := range slices {
			out = append(out, bytes.Repeat([]byte{byte(i)}, i%4))
			sent.Write(out[i])
		}
		e.must(e.send(a, append([][]byte(nil), out...)...))
		for i := range slices {
			in = append(in, make([]byte, (i+2)%4))
		}
		room := link.Len(in)
		in = append(in, make([]byte, max(0, sent.Len()-room)))
		in = link.Front(nil, in, sent.Len())
		e.must(e.recv(b, append([][]byte(nil), in...)...))
		for _, s := range in {
			got.Write(s)
		}
		if !bytes.Equal(got.Bytes(), sent.Bytes()) {
			e.Fatalf("batch of %d slices: %d bytes came that are not those that were sent", slices, got.Len())
		}
	}
}

func noBytes(e *env) {
	a, b := e.pair()
	empties := [][][]byte{nil, {}, {nil}, {{}, nil, {}}}
	nothing := func(what string) {
		for _, batch := range empties {
			if n, err := a.Send(batch); n != 0 || err != nil {
				e.Fatalf("%s: Send of no bytes gives %d, %v", what, n, err)
			}
			if n, err := b.Recv(batch); n != 0 || err != nil {
				e.Fatalf("%s: Recv into no room gives %d, %v", what, n, err)
			}
		}
	}
	nothing("fresh link")
	e.must(e.send(a, []byte("xy")))
	nothing("link with bytes")
	got := make([]byte, 2)
	e.must(e.recv(b, got))
	if string(got) != "xy" {
		e.Fatalf("xy was sent, %q came", got)
	}
	e.must(a.CloseSend())
	e.must(e.eof(b))
	if n, err := b.Recv(nil); n != 0 || err != nil {
		e.Fatalf("end of stream: Recv into no room gives %d, %v", n, err)
	}
}

func duplex(e *env) {
	a, b := e.pair()
	const total = 4 << 20
	cuts := func(n uint64) cut { return cut{seeded(n), 4, 20000} }
	ab, abIn := e.stream(a, b, total, cuts(1), cuts(2))
	ba, baIn := e.stream(b, a, total, cuts(3), cuts(4))
	e.together(ab, abIn, ba, baIn)
}

func linksApart(e *env) {
	ln := e.listen()
	const links = 8
	var dialled, accepted [links]link.Link
	for i := range links {
		dialled[i], accepted[i] = e.pairAt(ln)
	}
	for i := range links {
		e.must(e.send(dialled[i], fmt.Appendf(nil, "to %d", i)))
		e.must(e.send(accepted[i], fmt.Appendf(nil, "fr %d", i)))
	}
	for i := range links {
		for want, l := range map[string]link.Link{fmt.Sprintf("to %d", i): accepted[i], fmt.Sprintf("fr %d", i): dialled[i]} {
			got := make([]byte, 4)
			e.must(e.recv(l, got))
			if string(got) != want {
				e.Fatalf("link %d: %q came instead of %q", i, got, want)
			}
		}
	}
}
