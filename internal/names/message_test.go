package names

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/watchdog"
)

var someOwner = Owner{1, 2, 3}

func TestMessagesAsBytes(t *testing.T) {
	r := Request{Op: OpPublish, Owner: Owner{0: 0xaa, 31: 0xbb}, Scope: "chem", Service: "heat", Port: "p"}
	want := "\x00\x30\x01\xaa" + strings.Repeat("\x00", 30) + "\xbb\x00\x04chem\x00\x04heat\x00\x01p"
	if got := r.Append(nil); string(got) != want {
		t.Errorf("%q\nwant %q", got, want)
	}
	if got, err := ParseRequest([]byte(want[2:])); err != nil || got != r {
		t.Errorf("%#v: %v", got, err)
	}
	a := Answer{CodeNotFound, "no"}
	if got := a.Append(nil); string(got) != "\x00\x05\x03\x00\x02no" {
		t.Errorf("%q", got)
	}
	if got, err := ParseAnswer([]byte("\x03\x00\x02no")); err != nil || got != a {
		t.Errorf("%v: %v", got, err)
	}
}

func TestRequestsThatAreNone(t *testing.T) {
	long := Request{Op: OpPublish, Service: strings.Repeat("s", MaxService), Scope: strings.Repeat("c", MaxScope), Port: strings.Repeat("p", MaxPort)}
	if b := long.Append(nil); len(b)-2 > maxFrame {
		t.Fatalf("the longest request has %d bytes, more than a frame's %d", len(b), maxFrame)
	} else if _, err := ParseRequest(b[2:]); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]Request{
		"no service":      {Op: OpLookup},
		"long service":    {Op: OpLookup, Service: strings.Repeat("s", MaxService+1)},
		"long scope":      {Op: OpLookup, Service: "s", Scope: strings.Repeat("s", MaxScope+1)},
		"long port":       {Op: OpPublish, Service: "s", Port: strings.Repeat("s", MaxPort+1)},
		"zero in a name":  {Op: OpLookup, Service: "a\x00b"},
		"zero in a port":  {Op: OpPublish, Service: "a", Port: "b\x00"},
		"no such command": {Op: opEnd, Service: "a"},
	} {
		if _, err := ParseRequest(r.Append(nil)[2:]); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	good := (&Request{Op: OpLookup, Service: "s"}).Append(nil)[2:]
	for n := range good {
		if _, err := ParseRequest(good[:n]); !errors.Is(err, ErrMessage) {
			t.Errorf("%d of %d bytes: %v", n, len(good), err)
		}
	}
	if _, err := ParseRequest(append(good, 0)); !errors.Is(err, ErrMessage) {
		t.Errorf("one byte too many: %v", err)
	}
}

// TestSecretsAreNotPrinted: a port is a capability, and an owner's proof is as good.
func TestSecretsAreNotPrinted(t *testing.T) {
	r := Request{Op: OpPublish, Owner: Owner{0: 0xd7, 1: 0xd7}, Service: "heat", Port: "hunter2"}
	a := Answer{CodeOK, "hunter2"}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if s := fmt.Sprintf(verb+verb, r, a); strings.Contains(s, "hunter2") || strings.Contains(s, "215") || strings.Contains(s, "d7") {
			t.Errorf("%s shows %s", verb, s)
		}
	}
}

// FuzzRequest carries any bytes out that are a request, as a server does.
func FuzzRequest(f *testing.F) {
	for _, r := range []Request{
		{}, {Op: OpPublish, Owner: someOwner, Scope: "chem", Service: "heat", Port: "impi-port/1+key=0"},
		{Op: OpRenew, Service: "heat", Port: "p"}, {Op: OpUnpublish, Service: "heat"}, {Op: OpLookup, Service: "\xff"},
	} {
		f.Add(r.Append(nil)[2:])
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		defer watchdog.Start()()
		r, err := ParseRequest(b)
		if err != nil {
			if !errors.Is(err, ErrMessage) || r != (Request{}) {
				t.Fatalf("%v with %v", err, r)
			}
			return
		}
		if again := r.Append(nil)[2:]; !bytes.Equal(again, b) {
			t.Fatalf("%q came back as %q", b, again)
		}
		table := NewTable(Limits{})
		a := table.Do(1, &r)
		if got, err := ParseAnswer(a.Append(nil)[2:]); err != nil || got.Code != a.Code {
			t.Fatalf("answer %v came back as %v: %v", a, got, err)
		}
		if table.Leave(1); table.Len() != 0 || len(table.scopes)+len(table.held) != 0 {
			t.Fatalf("%d names are left", table.Len())
		}
	})
}

// FuzzAnswer reads any bytes as a client does.
func FuzzAnswer(f *testing.F) {
	f.Add((&Answer{CodeOK, "p"}).Append(nil)[2:])
	f.Add((&Answer{CodeFull, strings.Repeat("x", maxText)}).Append(nil)[2:])
	f.Fuzz(func(t *testing.T, b []byte) {
		defer watchdog.Start()()
		a, err := ParseAnswer(b)
		if err != nil {
			if !errors.Is(err, ErrMessage) {
				t.Fatal(err)
			}
			return
		}
		if again := a.Append(nil)[2:]; !bytes.Equal(again, b) {
			t.Fatalf("%q came back as %q", b, again)
		}
	})
}
