package main

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"
)

// What the numbers of a tally count: letters a to z, then words by length, the
// last of which counts all longer ones too.
const (
	alphabet = 26
	lengths  = 32
)

type tally struct {
	numbers [alphabet + lengths]int64
	words   map[string]int64
}

func newTally() *tally { return &tally{words: map[string]int64{}} }

func count(text []byte) *tally {
	t := newTally()
	eachWord(text, func(word []byte) {
		t.words[string(word)]++
		for _, b := range word {
			if 'a' <= b && b <= 'z' {
				t.numbers[b-'a']++
			}
		}
		t.numbers[alphabet+min(utf8.RuneCount(word), lengths)-1]++
	})
	return t
}

func (t *tally) total() (n int64) {
	for _, k := range t.numbers[alphabet:] {
		n += k
	}
	return n
}

func (t *tally) meanLength() float64 {
	var sum int64
	for i, k := range t.numbers[alphabet:] {
		sum += int64(i+1) * k
	}
	return float64(sum) / float64(max(t.total(), 1))
}

// letters lists the alphabet, the most frequent letter first.
func (t *tally) letters() string {
	abc := []byte("abcdefghijklmnopqrstuvwxyz")
	slices.SortStableFunc(abc, func(a, b byte) int { return cmp.Compare(t.numbers[b-'a'], t.numbers[a-'a']) })
	return string(abc)
}

type entry struct {
	word  string
	count int64
}

// top returns the n most frequent words; equally frequent ones by the alphabet.
func (t *tally) top(n int) []entry {
	all := make([]entry, 0, len(t.words))
	for w, k := range t.words {
		all = append(all, entry{w, k})
	}
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.word, b.word))
	})
	return all[:min(max(n, 0), len(all))]
}

// encode returns the words as bytes: for each its count, its length and its letters, in a
// form that does not depend on the machine.
func (t *tally) encode() []byte {
	out := []byte{}
	for _, w := range slices.Sorted(maps.Keys(t.words)) {
		out = binary.AppendUvarint(out, uint64(t.words[w]))
		out = binary.AppendUvarint(out, uint64(len(w)))
		out = append(out, w...)
	}
	return out
}

var errEncoding = errors.New("garbled words")

// decode adds the words of any number of encoded tallies.
func (t *tally) decode(data []byte) error {
	for len(data) > 0 {
		n, used := binary.Uvarint(data)
		if used <= 0 {
			return fmt.Errorf("%w: no count", errEncoding)
		}
		data = data[used:]
		size, used := binary.Uvarint(data)
		if used <= 0 || size > uint64(len(data)-used) {
			return fmt.Errorf("%w: a word is cut off", errEncoding)
		}
		data = data[used:]
		t.words[string(data[:size])] += int64(n)
		data = data[size:]
	}
	return nil
}

func (t *tally) difference(u *tally) string {
	for i, n := range t.numbers {
		switch {
		case n == u.numbers[i]:
		case i < alphabet:
			return fmt.Sprintf("%d times the letter %c against %d", n, 'a'+i, u.numbers[i])
		default:
			return fmt.Sprintf("%d words of length %d against %d", n, i-alphabet+1, u.numbers[i])
		}
	}
	for w, n := range u.words {
		if t.words[w] != n {
			return fmt.Sprintf("%d times %q against %d", t.words[w], w, n)
		}
	}
	if len(t.words) != len(u.words) {
		return fmt.Sprintf("%d different words against %d", len(t.words), len(u.words))
	}
	return ""
}
