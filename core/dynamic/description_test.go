package dynamic

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"testing"
)

func sampleDescription() *Description {
	c := sampleCard()
	return &Description{
		World: WorldID{1, 15: 2}, Secret: Token{3, 31: 4},
		Limits: Limits{DataLen: 1 << 18, AckMark: 32, HiWater: 128, TagUB: 1<<31 - 1, XSize: -1, MaxLinear: 4, Check: true},
		Groups: []Group{{3, 0, c}, {1 << 20, 1, BusinessCard{Version: CardVersion}}, {1, 0, c}},
	}
}

func TestDescription(t *testing.T) {
	d := sampleDescription()
	b, err := d.Append([]byte("x"))
	if err != nil || b[0] != 'x' {
		t.Fatal(err)
	}
	back, err := ReadDescription(b[1:])
	if err != nil || !reflect.DeepEqual(back, d) || back.Size() != 1<<20+4 {
		t.Errorf("%+v: %v", back, err)
	}
}

func TestDescriptionCutOff(t *testing.T) {
	b, err := sampleDescription().Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := range b {
		if _, err := ReadDescription(b[:n]); !errors.Is(err, ErrDescription) {
			t.Errorf("%d of %d bytes: %v", n, len(b), err)
		}
	}
	if _, err := ReadDescription(append(b, 0)); !errors.Is(err, ErrDescription) {
		t.Errorf("a byte more: %v", err)
	}
}

// TestDescriptionRefuses what nobody may say, and Append what nobody would take.
func TestDescriptionRefuses(t *testing.T) {
	for what, spoil := range map[string]func(d *Description){
		"no data":              func(d *Description) { d.Limits.DataLen = 0 },
		"too much data":        func(d *Description) { d.Limits.DataLen = 1 << 31 },
		"no acknowledgement":   func(d *Description) { d.Limits.AckMark = 0 },
		"ackmark over hiwater": func(d *Description) { d.Limits.AckMark = 129 },
		"a negative tag":       func(d *Description) { d.Limits.TagUB = -1 },
		"nobody":               func(d *Description) { d.Groups = nil },
		"an empty group":       func(d *Description) { d.Groups[1].Count = 0 },
		"too many procs":       func(d *Description) { d.Groups[1].Count = MaxWorldProcs - 3 },
		"a negative site":      func(d *Description) { d.Groups[2].Site = -1 },
	} {
		d := sampleDescription()
		spoil(d)
		if b, err := d.Append([]byte("x")); !errors.Is(err, ErrDescription) || string(b) != "x" {
			t.Errorf("%s: %d bytes, %v", what, len(b), err)
		}
	}
	d := sampleDescription()
	d.Groups[0].Card.Version = 2
	if _, err := d.Append(nil); !errors.Is(err, ErrCardVersion) {
		t.Errorf("card: %v", err)
	}
	good, _ := sampleDescription().Append(nil)
	for what, at := range map[string]int{"version": 3, "flags": descriptionHead - 8} {
		b := bytes.Clone(good)
		b[at] ^= 0x82
		if _, err := ReadDescription(b); !errors.Is(err, ErrDescription) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestDescriptionAllocatesNothingForPromises: the number of groups is only
// believed as far as there are bytes.
func TestDescriptionAllocatesNothingForPromises(t *testing.T) {
	b, _ := sampleDescription().Append(nil)
	binary.BigEndian.PutUint32(b[descriptionHead-4:], 1<<32-1)
	if _, err := ReadDescription(b); !errors.Is(err, ErrDescription) {
		t.Error(err)
	}
}

func TestLimitsLeast(t *testing.T) {
	a := Limits{DataLen: 1, AckMark: 20, HiWater: 30, TagUB: 40, XSize: -1, MaxLinear: 4, Check: true, Survive: true}
	b := Limits{DataLen: 10, AckMark: 2, HiWater: 50, TagUB: 4, XSize: 7, MaxLinear: -1, Check: true, Survive: true}
	want := Limits{DataLen: 1, AckMark: 2, HiWater: 30, TagUB: 4, XSize: 7, MaxLinear: 4, Check: true, Survive: true}
	if a.Least(b) != want || b.Least(a) != want {
		t.Errorf("%+v %+v", a.Least(b), b.Least(a))
	}
	b.Check, b.Survive, b.XSize, a.XSize = false, false, -1, -1
	if l := a.Least(b); l.Check || l.Survive || l.XSize != -1 {
		t.Errorf("%+v", l)
	}
	if l := a.Least(a); l != a {
		t.Errorf("with itself: %+v", l)
	}
}

// FuzzReadDescription: what is taken is what is written.
func FuzzReadDescription(f *testing.F) {
	b, _ := sampleDescription().Append(nil)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := ReadDescription(b)
		if err != nil {
			if !errors.Is(err, ErrDescription) {
				t.Fatal(err)
			}
			return
		}
		again, err := d.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		back, err := ReadDescription(again)
		if err != nil || !reflect.DeepEqual(back, d) {
			t.Fatalf("%+v became %+v: %v", d, back, err)
		}
	})
}
