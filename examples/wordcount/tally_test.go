package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// merged counts in parts, as ranks do, and adds up.
func merged(t *testing.T, text []byte, n int) *tally {
	t.Helper()
	all, gathered := newTally(), []byte{}
	for _, part := range split(text, n) {
		own := count(part)
		for i, k := range own.numbers {
			all.numbers[i] += k
		}
		gathered = append(gathered, own.encode()...)
	}
	if err := all.decode(gathered); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestPartsAddUp(t *testing.T) {
	text, err := load("")
	if err != nil {
		t.Fatal(err)
	}
	whole := count(text)
	for _, n := range []int{1, 2, 5, 64} {
		if d := merged(t, text, n).difference(whole); d != "" {
			t.Errorf("%d parts: %s", n, d)
		}
	}
}

func TestCount(t *testing.T) {
	c := count([]byte("The cat and the Other cat: " + strings.Repeat("z", 40) + " ŵ"))
	if c.total() != 8 || c.words["the"] != 2 || c.words["cat"] != 2 || c.words["ŵ"] != 1 || len(c.words) != 6 {
		t.Errorf("%d words: %v", c.total(), c.words)
	}
	if n := c.numbers[:alphabet]; n['t'-'a'] != 5 || n['z'-'a'] != 40 || n['q'-'a'] != 0 {
		t.Errorf("letters %v", n)
	}
	if n := c.numbers[alphabet:]; n[0] != 1 || n[2] != 5 || n[4] != 1 || n[lengths-1] != 1 {
		t.Errorf("lengths %v", n)
	}
	if l := c.letters(); !strings.HasPrefix(l, "zt") || len(l) != 26 {
		t.Errorf("by frequency: %s", l)
	}
}

func TestTop(t *testing.T) {
	c := count([]byte("b a c a b d a"))
	want := []entry{{"a", 3}, {"b", 2}, {"c", 1}}
	if got := c.top(3); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if got := c.top(100); len(got) != 4 {
		t.Errorf("all: %v", got)
	}
	if got := c.top(-1); len(got) != 0 {
		t.Errorf("fewer than none: %v", got)
	}
}

func TestDecodeRefusesGarbage(t *testing.T) {
	good := count([]byte("alpha beta")).encode()
	for i := 1; i < len(good); i++ {
		if i == 7 { // after the first word
			continue
		}
		if err := newTally().decode(good[:i]); !errors.Is(err, errEncoding) {
			t.Errorf("the first %d bytes: %v", i, err)
		}
	}
	huge := []byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 'x'}
	if err := newTally().decode(huge); !errors.Is(err, errEncoding) {
		t.Errorf("a word longer than memory: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(count([]byte("to be or not to be")).encode())
	f.Add([]byte{0xff})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		c := newTally()
		if c.decode(data) != nil {
			return
		}
		again := newTally()
		if err := again.decode(c.encode()); err != nil || again.difference(c) != "" {
			t.Errorf("%x: %v, %s", data, err, again.difference(c))
		}
	})
}

func TestDifference(t *testing.T) {
	text := []byte("one two two")
	for name, c := range map[string]struct {
		change func(*tally)
		want   string
	}{
		"nothing":   {func(*tally) {}, ""},
		"letter":    {func(c *tally) { c.numbers['o'-'a']++ }, "the letter o"},
		"length":    {func(c *tally) { c.numbers[alphabet+2]-- }, "length 3"},
		"count":     {func(c *tally) { c.words["two"]++ }, `"two"`},
		"word less": {func(c *tally) { delete(c.words, "one") }, `"one"`},
		"word more": {func(c *tally) { c.words["six"]++ }, "different words"},
	} {
		got := count(text)
		c.change(got)
		if d := got.difference(count(text)); (c.want == "") != (d == "") || !strings.Contains(d, c.want) {
			t.Errorf("%s: %q", name, d)
		}
	}
}
