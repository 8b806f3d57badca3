package script

import "strings"

// Words is a step split into words: the plain words in their order, and the words of the form
// name=value by their names. The function that plays the step uses both.
type Words struct {
	Verb  string
	Plain []string
	Named map[string]string
	Quote string // text between quotation marks, if any
	Rest  string // all text after the verb, unchanged
}

// Split splits the text of a step into words.
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

// Word returns the n-th plain word, or "" if there is none.
func (w Words) Word(n int) string {
	if n < len(w.Plain) {
		return w.Plain[n]
	}
	return ""
}

// At returns the n-th plain word as a number.
func (w Words) At(n int) int { return int(Number(w.Word(n))) }

// Has reports whether there is a word name=value with that name.
func (w Words) Has(name string) bool { _, has := w.Named[name]; return has }

// Number returns the value of a name as a number, or otherwise if there is none.
func (w Words) Number(name string, otherwise uint64) uint64 {
	if !w.Has(name) {
		return otherwise
	}
	return Number(w.Named[name])
}

// Int is Number for values that the caller needs as an int.
func (w Words) Int(name string, otherwise int) int { return int(w.Number(name, uint64(otherwise))) }
