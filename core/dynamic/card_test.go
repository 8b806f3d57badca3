package dynamic

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/allocs"
	"github.com/openimpi/impi/internal/watchdog"
)

func sampleCard() BusinessCard {
	return BusinessCard{
		Version:   CardVersion,
		Node:      "5f0c2a/1000",
		ByteOrder: LittleEndian,
		Addresses: []TransportAddress{
			{"shm", "/dev/shm/impi-7:1"}, {"tcp", "127.0.0.2:5001"}, {"tcp", "[::1]:5001"}, {"quic", "h=1,k=a:b"},
		},
		Features: []string{"resume", "checksum"},
	}
}

const sampleText = "impi-card/1 node=5f0c2a/1000 order=little offer=shm:/dev/shm/impi-7:1 offer=tcp:127.0.0.2:5001" +
	" offer=tcp:[::1]:5001 offer=quic:h=1,k=a:b feature=resume feature=checksum"

func TestCardText(t *testing.T) {
	c := sampleCard()
	b, err := c.AppendText([]byte("x"))
	if err != nil || string(b) != "x"+sampleText {
		t.Fatalf("%s: %v", b, err)
	}
	back, err := ParseBusinessCard([]byte(sampleText))
	if err != nil || !reflect.DeepEqual(back, c) {
		t.Errorf("%+v: %v", back, err)
	}
}

func TestCardLookups(t *testing.T) {
	c := sampleCard()
	if o, ok := c.Address("tcp"); !ok || o.Address != "127.0.0.2:5001" {
		t.Errorf("the first tcp offer is %v", o)
	}
	if _, ok := c.Address("unix"); ok || c.Has("lanes") || !c.Has("checksum") {
		t.Error("lookups")
	}
	d := c
	if !c.SameNode(&d) {
		t.Error("a card and its copy")
	}
	c.Node, d.Node = "", ""
	if c.SameNode(&d) {
		t.Error("unknown nodes are not the same")
	}
}

// TestCardLater: a later writer of this version may add fields.
func TestCardLater(t *testing.T) {
	c, err := ParseBusinessCard([]byte("impi-card/1 lanes=4 node=a colour=red order=big"))
	if err != nil || c.Node != "a" || c.ByteOrder != BigEndian {
		t.Errorf("%+v: %v", c, err)
	}
	if c, err := ParseBusinessCard([]byte("impi-card/1")); err != nil || c.Version != 1 || c.Addresses != nil {
		t.Errorf("%+v: %v", c, err)
	}
}

func TestCardFaults(t *testing.T) {
	endpoints := strings.Repeat(" offer=tcp:x", 1)
	for i := range MaxAddresses {
		endpoints += " offer=tcp:a" + string(rune('a'+i))
	}
	features := ""
	for i := range MaxFeatures + 1 {
		features += " feature=f" + string(rune('a'+i))
	}
	for text, want := range map[string]error{
		"":                                    ErrCard,
		"impi-card":                           ErrCard,
		"impi-card/":                          ErrCard,
		"impi-card/x":                         ErrCard,
		"impi-card/01":                        ErrCard,
		"impi-card/99999999999":               ErrCard,
		"impi-card/2 node=a":                  ErrCardVersion,
		"impi-card/0":                         ErrCardVersion,
		" impi-card/1":                        ErrCard,
		"impi-card/1 ":                        ErrCard,
		"impi-card/1  node=a":                 ErrCard,
		"impi-card/1 node":                    ErrCard,
		"impi-card/1 node=":                   ErrCard,
		"impi-card/1 =a":                      ErrCard,
		"impi-card/1 Node=a":                  ErrCard,
		"impi-card/1 node=a node=a":           ErrCard,
		"impi-card/1 node=a\n":                ErrCard,
		"impi-card/1 node=a\x00":              ErrCard,
		"impi-card/1 node=\xff":               ErrCard,
		"impi-card/1 node=a\tb":               ErrCard,
		"impi-card/1 order=middle":            ErrCard,
		"impi-card/1 offer=tcp":               ErrCard,
		"impi-card/1 offer=tcp:":              ErrCard,
		"impi-card/1 offer=:x":                ErrCard,
		"impi-card/1 offer=TCP:x":             ErrCard,
		"impi-card/1 offer=9p:x":              ErrCard,
		"impi-card/1 offer=tcp:x offer=tcp:x": ErrCard,
		"impi-card/1 feature=a feature=a":     ErrCard,
		"impi-card/1 feature=a/b":             ErrCard,
		"impi-card/1" + endpoints:             ErrCard,
		"impi-card/1" + features:              ErrCard,
		"impi-card/1 feature=" + strings.Repeat("a", MaxName+1): ErrCard,
		"impi-card/1 node=" + strings.Repeat("a", MaxCard):      ErrCard,
	} {
		if c, err := ParseBusinessCard([]byte(text)); !errors.Is(err, want) || !reflect.DeepEqual(c, BusinessCard{}) {
			t.Errorf("%q: %+v %v, want %v", text, c, err, want)
		}
	}
}

// TestCardWriterFaults: what cannot be read is not written, and b is unchanged.
func TestCardWriterFaults(t *testing.T) {
	for name, change := range map[string]func(*BusinessCard){
		"version":         func(c *BusinessCard) { c.Version = 2 },
		"space in node":   func(c *BusinessCard) { c.Node = "a b" },
		"newline":         func(c *BusinessCard) { c.Addresses[0].Address = "a\nb" },
		"no address":      func(c *BusinessCard) { c.Addresses[0].Address = "" },
		"order":           func(c *BusinessCard) { c.ByteOrder = "pdp" },
		"field injection": func(c *BusinessCard) { c.Features[0] = "a feature=b" },
		"one offer twice": func(c *BusinessCard) { c.Addresses[1] = c.Addresses[0] },
		"too long":        func(c *BusinessCard) { c.Addresses[0].Address = strings.Repeat("a", MaxCard) },
		"invalid UTF-8":   func(c *BusinessCard) { c.Node = "\xff" },
	} {
		c := sampleCard()
		change(&c)
		if b, err := c.AppendText([]byte("x")); err == nil || string(b) != "x" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}

// TestCardFitsIntoPortName: with room for a tag, MPI_MAX_PORT_NAME holds it.
func TestCardFitsIntoPortName(t *testing.T) {
	if MaxCard > 1024-1-32 {
		t.Errorf("a card of %d bytes", MaxCard)
	}
	c := BusinessCard{Version: CardVersion, Node: strings.Repeat("n", 64), ByteOrder: BigEndian}
	for _, name := range []string{"tcp", "quic", "unix", "shm", "vendor"} {
		c.Addresses = append(c.Addresses, TransportAddress{name, strings.Repeat("a", 120)})
	}
	if _, err := c.AppendText(nil); err != nil {
		t.Errorf("five transports with paths do not fit: %v", err)
	}
}

func FuzzCard(f *testing.F) {
	f.Add([]byte(sampleText))
	f.Add([]byte("impi-card/1"))
	f.Add([]byte("impi-card/1 offer=tcp:x unknown=y"))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer watchdog.Start()()
		var c BusinessCard
		var err error
		if cost := allocs.Bytes(func() { c, err = ParseBusinessCard(text) }); cost > allocs.MaxError+64*MaxCard {
			t.Fatalf("%d bytes took %d bytes of memory", len(text), cost)
		}
		if err != nil {
			if !errors.Is(err, ErrCard) && !errors.Is(err, ErrCardVersion) {
				t.Fatalf("%v wraps nothing", err)
			}
			return
		}
		b, err := c.AppendText(nil)
		if err != nil {
			t.Fatalf("%q was read and cannot be written: %v", text, err)
		}
		again, err := ParseBusinessCard(b)
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Fatalf("%q became %q: %v", text, b, err)
		}
	})
}
