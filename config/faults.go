package config

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// faults collects what is wrong with one file.
type faults struct {
	file  string
	lines []string
	list  Diagnostics
}

func (f *faults) fault(pos Pos, problem, remedy string) { f.add(Error, pos, problem, remedy) }

func (f *faults) warn(pos Pos, problem, remedy string) { f.add(Warning, pos, problem, remedy) }

func (f *faults) add(severity Severity, pos Pos, problem, remedy string) {
	pos.File = cmp.Or(pos.File, f.file)
	d := Diagnostic{Severity: severity, Pos: pos, Problem: problem, Remedy: remedy}
	d.Source = sourceLine(f.lines, pos)
	// A fault that concerns several sites is found at each of them.
	same := func(other Diagnostic) bool { return other.Pos == d.Pos && other.Problem == d.Problem }
	if !slices.ContainsFunc(f.list, same) {
		f.list = append(f.list, d)
	}
}

func sourceLine(lines []string, pos Pos) string {
	if pos.Line < 1 || pos.Line > len(lines) {
		return ""
	}
	return lines[pos.Line-1]
}

// sorted returns the faults in file order.
func (f *faults) sorted() Diagnostics {
	slices.SortStableFunc(f.list, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
	return f.list
}

func splitLines(src []byte) []string {
	lines := strings.Split(string(src), "\n")
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	return lines
}

func quote(s string) string { return strconv.Quote(s) }

func itoa(n int) string { return strconv.Itoa(n) }

func utoa(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// plural returns a number of things: "1 client", "2 clients".
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return itoa(n) + " " + thing + "s"
}

// article returns a word with "a" or "an" before it.
func article(word string) string {
	if word != "" && strings.ContainsRune("aeiou", rune(word[0])) {
		return "an " + word
	}
	return "a " + word
}
