package script

import "strings"

// Words are a step taken apart: the words in their order, and those of the form name=value
// by their names. Both are used by who plays the step.
type Words struct {
	Verb  string
	Plain []string
	Named map[string]string
	Quote string // what is between quotation marks, if anything is
	Rest  string // all behind the verb, as it is
}

// Split takes the text of a step apart.
func Split(text string) Words {
	verb, rest, _ := strings.Cut(text, " ")
	w := Words{Verb: verb, Rest: rest, Named: map[string]string{}}
	if before, quoted, is := strings.Cut(rest, `"`); is {
		w.Quote, quoted, _ = strings.Cut(quoted, `"`)
		rest = before + quoted
	}
	for _, word := range strings.Fields(rest) {
		if name, value, is := strings.Cut(word, "="); is {
			w.Named[name] = value
		} else {
			w.Plain = append(w.Plain, word)
		}
	}
	return w
}

// Word is the n-th of the plain words, or nothing.
func (w Words) Word(n int) string {
	if n < len(w.Plain) {
		return w.Plain[n]
	}
	return ""
}

// At is that word as a number.
func (w Words) At(n int) int { return int(Number(w.Word(n))) }

// Has reports whether there is such a name.
func (w Words) Has(name string) bool { _, has := w.Named[name]; return has }

// Number is the value of a name, or else what it is without.
func (w Words) Number(name string, otherwise uint64) uint64 {
	if !w.Has(name) {
		return otherwise
	}
	return Number(w.Named[name])
}

// Int is Number for small ones.
func (w Words) Int(name string, otherwise int) int { return int(w.Number(name, uint64(otherwise))) }
