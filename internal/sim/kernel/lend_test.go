package kernel

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// lenders makes the ends of a link that lends whenever it can.
func lenders(seed uint64) (k *Kernel, from, to *End) {
	k = New(seed)
	l := k.NewLink(LinkSpec{Name: "ab", Delay: time.Microsecond, Capacity: 300, Chop: 0.3, Lend: 1}, nil)
	return k, l.Ends[0], l.Ends[1]
}

// TestLend: lent bytes arrive unchanged and are given back in order, and not before they were
// received unless they were copied.
func TestLend(t *testing.T) {
	for seed := range uint64(50) {
		k, from, to := lenders(seed)
		text := make([]byte, 2000)
		for i := range text {
			text[i] = byte(i * 7)
		}
		var back int
		var got []byte
		for len(got) < len(text) || back < len(text) {
			rest := text[back:]
			n, err := from.Lend([][]byte{rest[:min(10, len(rest))], rest[min(10, len(rest)):]})
			if err != nil {
				t.Fatal(err)
			}
			clear(text[back : back+n]) // it is ours again
			back += n
			run(t, k)
			buf := make([]byte, 64)
			if n, err = to.Recv([][]byte{buf}); err != nil {
				t.Fatal(err)
			}
			got = append(got, buf[:n]...)
		}
		for i, b := range got {
			if b != byte(i*7) {
				t.Fatalf("seed %d: byte %d is %d", seed, i, b)
			}
		}
		if n, err := from.Send([][]byte{{1}}); n != 1 || err != nil {
			t.Fatalf("seed %d: nothing is lent, and Send took %d: %v", seed, n, err)
		}
	}
}

// lentUncopied lends until some of it is not copied.
func lentUncopied(t *testing.T) (k *Kernel, from, to *End, text []byte) {
	t.Helper()
	for seed := range uint64(50) {
		k, from, to = lenders(seed)
		text = bytes.Repeat([]byte{5}, 100)
		n, err := from.Lend([][]byte{text})
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return k, from, to, text
		}
	}
	t.Fatal("everything was copied")
	return nil, nil, nil, nil
}

// TestBadBorrowers: whoever breaks the contract is found.
func TestBadBorrowers(t *testing.T) {
	for name, wrong := range map[string]func(from *End, text []byte){
		"memory changed":  func(_ *End, text []byte) { clear(text) },
		"sent meanwhile":  func(from *End, text []byte) { _, _ = from.Send([][]byte{text}) },
		"a shorter batch": func(from *End, _ []byte) { _, _ = from.Lend([][]byte{nil}) },
	} {
		t.Run(name, func(t *testing.T) {
			k, from, to, text := lentUncopied(t)
			defer func() {
				err, _ := recover().(error)
				if !errors.Is(err, ErrLoan) {
					t.Errorf("panic %v", err)
				}
			}()
			wrong(from, text)
			run(t, k)
			_, _ = to.Recv([][]byte{make([]byte, 200)})
		})
	}
}

// TestLoanEnds: after a cut, and after Close, lent memory belongs to the owner again, and the rest
// is lost.
func TestLoanEnds(t *testing.T) {
	for name, end := range map[string]func(from *End){
		"cut":   func(from *End) { from.Link().Cut(errors.New("cut")) },
		"close": func(from *End) { _ = from.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			k, from, to, text := lentUncopied(t)
			run(t, k)
			end(from)
			clear(text)
			run(t, k)
			if n, err := to.Recv([][]byte{make([]byte, 200)}); n != 0 || !errors.Is(err, link.ErrBroken) {
				t.Errorf("received %d bytes: %v", n, err)
			}
		})
	}
}
