package fabric

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// What a peer must not ask for, and not send.
func TestWrongFetches(t *testing.T) {
	for name, c := range map[string]struct {
		messages []header
		want     string
	}{
		"of no message":           {[]header{{kind: asks, number: 9, length: 1}}, "message 9"},
		"of one that was copied":  {[]header{{kind: asks, number: 0, length: 1}}, "message 0"},
		"nothing":                 {[]header{{kind: asks, number: 1}}, "0 bytes"},
		"beyond the end":          {[]header{{kind: asks, number: 1, offset: 4990, length: 11}}, "11 bytes at 4990"},
		"place that overflows":    {[]header{{kind: asks, number: 1, offset: 1 << 63, length: 11}}, "11 bytes at"},
		"longer than a slot":      {[]header{{kind: asks, number: 1, length: 1025}}, "1025 bytes"},
		"too many":                {[]header{{kind: asks, number: 1, length: 1}, {kind: asks, number: 1, length: 1}, {kind: asks, number: 1, length: 1}, {kind: asks, number: 1, length: 1}, {kind: asks, number: 1, length: 1}}, "beside 4 others"},
		"taken while it is owed":  {[]header{{kind: asks, number: 1, length: 1}, {kind: taken, number: 1}}, "has taken message 1"},
		"not asked for":           {[]header{{kind: piece, number: 1, length: 1024}, {kind: piece, number: 1, length: 1024, offset: 1024}, {kind: piece, number: 1, length: 952, offset: 2048}, {kind: piece, number: 1, length: 1}}, "not asked for"},
		"of another message":      {[]header{{kind: piece, number: 2, length: 1024}}, "of message 2, asked for"},
		"elsewhere":               {[]header{{kind: piece, number: 1, length: 1024, offset: 1}}, "at 1 of"},
		"less than was asked for": {[]header{{kind: piece, number: 1, length: 1023}}, "asked for were 1024"},
	} {
		p, x, _ := stranger(t)
		p.most, p.slotSize = 8, 1<<10
		file := lendTo(t, p.cache, 1)
		for range 2 {
			used(t, p.cache, file)
		}
		p.loans = []loan{{}, {message: 1, entry: file, data: make([]byte, 5000)}}
		if c.messages[0].kind == asks {
			p.loans = p.loans[1:]
		}
		p.open[1] = &offered{length: 3000}
		p.under = 1
		p.fetch(&read{number: 1, message: 1, entry: file}, make([]byte, 3000), 0)
		if _, err := p.ask(); err != nil {
			t.Fatal(err)
		}
		_ = x
		var err error
		for i := range c.messages {
			if err = p.message(&c.messages[i], nil); err != nil && i < len(c.messages)-1 {
				t.Fatalf("%s: message %d: %v", name, i, err)
			}
		}
		if !errors.Is(err, errWire) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A message that comes while parts are fetched is whole, and so are these.
func TestMessageBetweenParts(t *testing.T) {
	p, x, c := stranger(t)
	p.most, p.slotSize, p.given = 8, 1<<10, 4
	file := lendTo(t, p.cache, 1)
	used(t, p.cache, file)
	p.under = 1
	into := make([]byte, 3000)
	p.fetch(&read{number: 1, message: 1, entry: file}, into, 0)
	want := make([]byte, 3000)
	for i := range want {
		want[i] = byte(i / 7)
	}
	coming := func(h header, data []byte) {
		h.length = uint64(len(data))
		c.coming = append(c.coming, append(h.put(make([]byte, headerSize)), data...))
	}
	coming(header{kind: piece, number: 1}, want[:1024])
	coming(header{kind: eager}, want[500:1400])
	coming(header{kind: piece, number: 1, offset: 1024}, want[1024:2048])
	coming(header{kind: piece, number: 1, offset: 2048}, want[2048:])
	if _, err := p.ask(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.receive(); err != nil {
		t.Fatal(err)
	}
	const slot = 4096 + 1024*4 + 4*1024 // the first one for receiving
	if !bytes.Equal(into, want) || !bytes.Equal(x.mem[slot:][:900], want[500:1400]) || len(p.slow) > 0 {
		t.Errorf("the bytes are wrong, %d reads are under way", len(p.slow))
	}
}

// A side that does not answer asks is not asked: the link ends, as it did when such sides were made.
func TestOlderPeer(t *testing.T) {
	p, x, _ := stranger(t)
	p.cache.domain.(*book).limit = 1
	p.most, p.allowed, p.slotSize = 8, 8, 1<<10
	p.open[1] = &offered{key: []byte("key"), length: 5000}
	x.submit(4, fields{8: 1, 16: 1, 48: 100})
	if _, err := p.step(); err == nil || !strings.Contains(err.Error(), "too old") {
		t.Fatal(err)
	}
	q, y, _ := stranger(t)
	q.cache.domain.(*book).limit = 1
	if err := q.message(&header{kind: hello, number: 8, length: 1 << 10, offset: answersFetch}, nil); err != nil {
		t.Fatal(err)
	}
	q.open[1] = &offered{key: []byte("key"), length: 5000}
	y.submit(4, fields{8: 1, 16: 1, 48: 100})
	if _, err := q.step(); err != nil || len(q.slow) != 1 || q.slow[0].asked != 100 {
		t.Fatalf("%v, %d reads", err, len(q.slow))
	}
}
