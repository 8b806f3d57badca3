package handover

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"
)

// The bytes that docs/plugin-protocol.md shows.
func TestRecordGolden(t *testing.T) {
	r := Record{Kind: KindLink, Link: 0x0102030405060708, Mode: ModeFD, Preread: []byte("hi"), FDs: []int{7}}
	b, err := AppendRecord(nil, &r)
	want := "494d5046" + "0001" + "0001" + "0102030405060708" + "0001" + "0001" + "00000002" + "0000000000000000" + "6869"
	if err != nil || hex.EncodeToString(b) != want {
		t.Fatalf("%x, %v\nwant %s", b, err, want)
	}
	got, fds, err := ParseRecord(b)
	if err != nil || fds != 1 || got.Kind != r.Kind || got.Link != r.Link || got.Mode != r.Mode || string(got.Preread) != "hi" {
		t.Errorf("%+v, %d, %v", got, fds, err)
	}
}

func TestRecordLimits(t *testing.T) {
	r := Record{Kind: KindLink, Preread: make([]byte, MaxPreread), FDs: make([]int, MaxDescriptors)}
	b, err := AppendRecord(nil, &r)
	if err != nil || len(b) != MaxRecord {
		t.Fatalf("the largest: %d bytes, %v", len(b), err)
	}
	if _, fds, err := ParseRecord(b); err != nil || fds != MaxDescriptors {
		t.Errorf("the largest: %d, %v", fds, err)
	}
	r.Preread = make([]byte, MaxPreread+1)
	if _, err := AppendRecord(nil, &r); !errors.Is(err, ErrRecord) {
		t.Errorf("a byte more: %v", err)
	}
	r.Preread, r.FDs = nil, make([]int, MaxDescriptors+1)
	if _, err := AppendRecord(nil, &r); !errors.Is(err, ErrRecord) {
		t.Errorf("a descriptor more: %v", err)
	}
}

func TestRecordErrors(t *testing.T) {
	good, _ := AppendRecord(nil, &Record{Kind: KindLink, Link: 3, Preread: []byte("x")})
	for field, change := range map[string]func(b []byte) []byte{
		"magic":           func(b []byte) []byte { b[0]++; return b },
		"version 2":       func(b []byte) []byte { b[5]++; return b },
		"9 descriptors":   func(b []byte) []byte { b[19] = 9; return b },
		"brings 1":        func(b []byte) []byte { b[23] = 2; return b },
		"65537 bytes":     func(b []byte) []byte { b[21], b[23] = 1, 1; return b },
		"brings 0":        func(b []byte) []byte { return b[:HeaderLen] },
		"31 bytes":        func(b []byte) []byte { return b[:HeaderLen-1] },
		"0 bytes, the he": func(b []byte) []byte { return nil },
	} {
		_, _, err := ParseRecord(change(bytes.Clone(good)))
		if !errors.Is(err, ErrRecord) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	later := bytes.Clone(good) // flags of a later version are no concern of ours
	later[24], later[31] = 1, 1
	if _, _, err := ParseRecord(later); err != nil {
		t.Error(err)
	}
}

func FuzzParseRecord(f *testing.F) {
	good, _ := AppendRecord(nil, &Record{Kind: KindLink, Link: 3, Mode: ModeFD, Preread: []byte("x"), FDs: []int{1}})
	f.Add(good)
	f.Add(good[:HeaderLen])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		defer time.AfterFunc(10*time.Second, func() { panic("one input has taken more than 10s") }).Stop()
		r, fds, err := ParseRecord(b)
		if err != nil {
			return
		}
		r.FDs = make([]int, fds)
		again, err := AppendRecord(nil, &r)
		if err != nil {
			t.Fatal(err)
		}
		clear(b[24:32]) // flags and reserved are not kept
		if !bytes.Equal(again, b) {
			t.Errorf("%x became %x", b, again)
		}
	})
}
