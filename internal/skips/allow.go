package skips

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// Allowed are rules for tests that may be skipped where nothing should be missing.
type Allowed []rule

type rule struct{ test, reason *regexp.Regexp }

// ReadAllowed reads a file of allowed skips: in each line a regular expression for package and
// test, blanks, and one for the reason of the skip. # begins a comment, which gives the reason for
// the line.
func ReadAllowed(r io.Reader) (list Allowed, err error) {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		test, reason, _ := strings.Cut(text, " ")
		if reason = strings.TrimSpace(reason); reason == "" {
			return nil, fmt.Errorf("line %d: write the test, blanks and the reason of its skip", n)
		}
		a, e1 := regexp.Compile("^(?:" + test + ")$")
		b, e2 := regexp.Compile("^(?:" + reason + ")")
		if err := errors.Join(e1, e2); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		list = append(list, rule{a, b})
	}
	return list, lines.Err()
}

// Faults returns the skips that no line allows. Skips of tests that only make soak runs are faults
// if soaking is set: this is make soak.
func (a Allowed) Faults(list []Skip, soaking bool) []Skip {
	var faults []Skip
	for _, s := range list {
		if !a.allows(s) && (soaking || !s.Soak()) {
			faults = append(faults, s)
		}
	}
	return faults
}

func (a Allowed) allows(s Skip) bool {
	return slices.ContainsFunc(a, func(r rule) bool { return r.test.MatchString(s.Test) && r.reason.MatchString(s.Reason) })
}
