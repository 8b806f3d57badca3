package skips

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Skip is a test that was skipped.
type Skip struct {
	Test   string // package and test, a dot between them
	Reason string
}

// NotRun returns what the machine lacks for a test that was not run, and the remedy; is is false if
// the skip has another reason.
func (s Skip) NotRun() (missing, remedy string, is bool) {
	text, is := strings.CutPrefix(s.Reason, notRun)
	i := strings.LastIndex(text, ": ")
	if !is || i < 0 {
		return text, "", is
	}
	return text[:i], text[i+2:], true
}

// Soak reports whether only make soak runs the test.
func (s Skip) Soak() bool { return strings.HasPrefix(s.Reason, soak) }

type event struct{ Action, Package, Test, Output string }

// said matches what a test logs, after the file and the line.
var said = regexp.MustCompile(`^ +[^ :]+\.go:[0-9]+: (.*)`)

// Read parses the output of go test -json, and returns the skipped tests in order. What is inside
// of Module is named without it.
func Read(r io.Reader) ([]Skip, error) {
	var list []Skip
	words := map[[2]string]string{} // reason of each test, the last one logged
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 && line[0] == '{' {
			var e event
			if err := json.Unmarshal(line, &e); err != nil {
				return nil, fmt.Errorf("not written by go test -json: %w", err)
			}
			list = e.collect(words, list)
		}
		if errors.Is(err, io.EOF) {
			slices.SortStableFunc(list, func(a, b Skip) int { return cmp.Compare(a.Test, b.Test) })
			return list, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

const module = "github.com/openimpi/impi/"

func (e event) collect(words map[[2]string]string, list []Skip) []Skip {
	key := [2]string{e.Package, e.Test}
	switch {
	case e.Test == "": // a package, which is skipped if it has no tests
	case e.Action == "output":
		if m := said.FindStringSubmatch(e.Output); m != nil {
			words[key] = strings.TrimSpace(m[1])
		}
	case e.Action == "skip":
		list = append(list, Skip{Test: strings.TrimPrefix(e.Package, module) + "." + e.Test, Reason: words[key]})
		delete(words, key)
	case e.Action == "pass" || e.Action == "fail":
		delete(words, key)
	}
	return list
}

// Print lists the tests that were not run, what they lack, and the remedies, which come last.
func Print(w io.Writer, list []Skip) {
	missing, others := map[string][]string{}, 0
	left := 0
	for _, s := range list {
		what, remedy, is := s.NotRun()
		switch {
		case is:
			line := what
			if remedy != "" {
				line += "\n    to run it: " + remedy
			}
			missing[line] = append(missing[line], s.Test)
		case s.Soak():
			left++
		default:
			others++
		}
	}
	if left > 0 {
		fmt.Fprintf(w, "%s for make soak.\n", tests(left, "is left", "are left"))
	}
	if others > 0 {
		fmt.Fprintf(w, "%s to this machine or to what is tested.\n", tests(others, "does not apply", "do not apply"))
	}
	if len(missing) == 0 {
		fmt.Fprintln(w, "NOT RUN: nothing.")
		return
	}
	fmt.Fprintln(w, "NOT RUN:")
	for _, why := range slices.Sorted(maps.Keys(missing)) {
		fmt.Fprintf(w, "  %s\n", why)
		for _, test := range missing[why] {
			fmt.Fprintf(w, "      %s\n", test)
		}
	}
}

func tests(n int, one, many string) string {
	if n == 1 {
		return "1 test " + one
	}
	return fmt.Sprintf("%d tests %s", n, many)
}
