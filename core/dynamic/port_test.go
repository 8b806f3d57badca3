package dynamic

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func samplePort() Port {
	return Port{Key: Token{0xab, 31: 0xcd}, Opener: WorldProc{WorldID{1, 15: 2}, 7}, Card: sampleCard()}
}

func portName(t testing.TB, p *Port) string {
	t.Helper()
	b, err := p.AppendText(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPortName(t *testing.T) {
	p := samplePort()
	want := "impi-port/1+key=ab" + strings.Repeat("00", 30) + "cd+world=01" + strings.Repeat("00", 14) + "02+rank=7+" +
		strings.NewReplacer(" ", "+", "[", "%5b", "]", "%5d").Replace(sampleText)
	name := portName(t, &p)
	if name != want {
		t.Fatalf("%s\nwant %s", name, want)
	}
	back, err := ParsePort(" \t" + name + "\n")
	if err != nil || !reflect.DeepEqual(back, p) {
		t.Errorf("%+v: %v", back, err)
	}
}

// TestPortNameIsOneWord: whatever is on the card.
func TestPortNameIsOneWord(t *testing.T) {
	p := samplePort()
	p.Card.Addresses = []TransportAddress{{"odd", "a$b;c|d&e*f?'\"\\`(~#<>!+%ä"}}
	name := portName(t, &p)
	if i := strings.IndexFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._:/=,@-+%", r))
	}); i >= 0 {
		t.Errorf("%q has %q", name, name[i:i+1])
	}
	if back, err := ParsePort(name); err != nil || !reflect.DeepEqual(back, p) {
		t.Errorf("%+v: %v", back, err)
	}
}

// TestPortNameFits: offers are left out until the name is short enough, the
// preferred ones stay.
func TestPortNameFits(t *testing.T) {
	p := samplePort()
	p.Card.Addresses = nil
	for i := range MaxAddresses {
		p.Card.Addresses = append(p.Card.Addresses, TransportAddress{"tcp", fmt.Sprintf("%s:%d", strings.Repeat("h", 100), i)})
	}
	name := portName(t, &p)
	back, err := ParsePort(name)
	n := len(back.Card.Addresses)
	if err != nil || len(name) > MaxPortName || n < 4 || !reflect.DeepEqual(back.Card.Addresses, p.Card.Addresses[:n]) {
		t.Errorf("%d bytes, %d offers: %v", len(name), n, err)
	}
}

func TestPortNameNobodyCanReach(t *testing.T) {
	for what, endpoints := range map[string][]TransportAddress{
		"none":     nil,
		"too long": {{"tcp", strings.Repeat("h", MaxPortName)}},
	} {
		p := samplePort()
		p.Card.Addresses = endpoints
		if b, err := p.AppendText([]byte("x")); !errors.Is(err, ErrPort) || string(b) != "x" {
			t.Errorf("%s: %q, %v", what, b, err)
		}
	}
	p := samplePort()
	p.Card.Addresses = []TransportAddress{{"No Name", "a"}}
	if _, err := p.AppendText(nil); !errors.Is(err, ErrCard) {
		t.Errorf("malformed: %v", err)
	}
}

func TestParsePortRefuses(t *testing.T) {
	p := samplePort()
	good := portName(t, &p)
	for what, name := range map[string]string{
		"nothing":            "",
		"an own text":        "127.0.0.1:4711",
		"a card":             sampleText,
		"another version":    strings.Replace(good, "port/1", "port/2", 1),
		"no version":         strings.Replace(good, "port/1", "port/", 1),
		"a short key":        strings.Replace(good, "key=ab", "key=", 1),
		"no key":             strings.Replace(good, "key=", "kei=", 1),
		"a key of letters":   strings.Replace(good, "key=ab", "key=xy", 1),
		"a long world":       strings.Replace(good, "world=", "world=00", 1),
		"a negative rank":    strings.Replace(good, "rank=7", "rank=-7", 1),
		"a huge rank":        strings.Replace(good, "rank=7", "rank=2147483648", 1),
		"no rank":            strings.Replace(good, "+rank=7", "", 1),
		"no card":            good[:strings.Index(good, "+impi-card")],
		"a malformed card":   good + "+offer=",
		"nowhere":            good[:strings.Index(good, "+offer")],
		"too long":           good + strings.Repeat("x", MaxPortName),
		"an escape cut off":  good + "%5",
		"an escape of words": good + "%zz",
	} {
		if got, err := ParsePort(name); !errors.Is(err, ErrPort) || !reflect.DeepEqual(got, Port{}) {
			t.Errorf("%s: %+v, %v", what, got, err)
		} else if strings.Contains(err.Error(), "ab0000") {
			t.Errorf("%s: the error shows the key: %v", what, err)
		}
	}
}

// TestParsePortLater: a later writer of this version may add fields.
func TestParsePortLater(t *testing.T) {
	p := samplePort()
	back, err := ParsePort(strings.Replace(portName(t, &p), "+impi-card", "+colour=red+impi-card", 1))
	if err != nil || !reflect.DeepEqual(back, p) {
		t.Errorf("%+v: %v", back, err)
	}
}

// FuzzParsePort: whatever is taken for a port can be written, and means the same.
func FuzzParsePort(f *testing.F) {
	p := samplePort()
	f.Add(portName(f, &p))
	f.Add("impi-port/1+key=%")
	f.Fuzz(func(t *testing.T, name string) {
		p, err := ParsePort(name)
		if err != nil {
			if !errors.Is(err, ErrPort) {
				t.Fatalf("%v", err)
			}
			return
		}
		b, err := p.AppendText(nil)
		if err != nil {
			return // escapes may have made a short name of what is long
		}
		back, err := ParsePort(string(b))
		if err != nil || len(back.Card.Addresses) > len(p.Card.Addresses) {
			t.Fatalf("%s: %+v, %v", b, back, err)
		}
		if back.Card.Addresses = p.Card.Addresses; !reflect.DeepEqual(back, p) {
			t.Fatalf("%+v became %+v", p, back)
		}
	})
}
