package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func words(text string) (all []string) {
	eachWord([]byte(text), func(w []byte) { all = append(all, string(w)) })
	return all
}

func TestWhatAWordIs(t *testing.T) {
	for text, want := range map[string][]string{
		"":                            nil,
		" \n\t ":                      nil,
		"One, two;three":              {"one", "two", "three"},
		"don't don’t 'tis ours' it''": {"don't", "don't", "tis", "ours", "it"},
		"rock''n roll":                {"rock", "n", "roll"},
		"it's-a b’":                   {"it's", "a", "b"},
		"_Fits_ of 3rd x2y":           {"fits", "of", "rd", "x", "y"},
		"Ærø ÉTÉ naïve":               {"ærø", "été", "naïve"},
		"a\xffb \xe2\x80":             {"a", "b"},
	} {
		if got := words(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestSplitKeepsWordsWhole(t *testing.T) {
	for _, text := range []string{
		"", "word", "two words", "  ", strings.Repeat("longer ", 40) + strings.Repeat("x", 500) + " end",
		"l’été à Noël — où l’œuvre s’achève", "trailing \n",
	} {
		want := words(text)
		for n := 1; n < 40; n++ {
			parts := split([]byte(text), n)
			if len(parts) != n || string(bytes.Join(parts, nil)) != text {
				t.Fatalf("%q in %d: %q", text, n, parts)
			}
			var got []string
			for _, p := range parts {
				got = append(got, words(string(p))...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q in %d: words %q", text, n, got)
			}
		}
	}
}

func TestSplitIsEven(t *testing.T) {
	text := []byte(strings.Repeat("seven77 ", 10_000))
	for _, p := range split(text, 7) {
		if d := len(p) - len(text)/7; d < -8 || d > 8 {
			t.Errorf("a part of %d bytes of %d", len(p), len(text))
		}
	}
}

func TestTheBooksAreRealText(t *testing.T) {
	text, err := load("")
	if err != nil {
		t.Fatal(err)
	}
	if len(text) < 1<<20 {
		t.Errorf("%d bytes", len(text))
	}
	c := count(text)
	if top := c.top(1)[0]; top.word != "the" || c.total() < 200_000 || len(c.words) < 5000 {
		t.Errorf("%d words, %d different, most often %q", c.total(), len(c.words), top.word)
	}
	for _, phrase := range []string{"Sir _ISAAC NEWTON_", "Steve Klabnik"} {
		if !bytes.Contains(text, []byte(phrase)) {
			t.Errorf("%q is missing", phrase)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte("some text"))
	_ = z.Close()
	for _, path := range []string{write("a.txt", []byte("some text")), write("a.txt.gz", zipped.Bytes())} {
		if text, err := load(path); err != nil || string(text) != "some text" {
			t.Errorf("%s: %q, %v", filepath.Base(path), text, err)
		}
	}
	if _, err := load(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	if _, err := load(write("b.gz", []byte("not compressed"))); !errors.Is(err, gzip.ErrHeader) {
		t.Errorf("b.gz: %v", err)
	}
}
