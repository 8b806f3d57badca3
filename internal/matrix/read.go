package matrix

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/openimpi/impi/internal/provenance"
)

var (
	pageMark  = regexp.MustCompile(`^(\S+)(?: \((\d+)\))?$`)
	pageNote  = regexp.MustCompile(`(?m)^(\d+)\. (.*)$`)
	pageStamp = regexp.MustCompile(`(\d{4}-\d\d-\d\d) of commit ([0-9a-f]{7,40}(?:-dirty)?)\b`)
)

// PeersHeading is the heading of the part of the page with other MPIs.
const PeersHeading = "\n## Other MPIs\n"

var errPage = errors.New("this is no page with the matrix")

// ReadTable returns the results that are in a page. It does not say which cell is of which commit:
// each of its commits is that of some.
func ReadTable(page string) (results []Result, err error) {
	page, _, _ = strings.Cut(page, PeersHeading)
	notes := make(map[string]string)
	for _, m := range pageNote.FindAllStringSubmatch(page, -1) {
		notes[m[1]] = m[2]
	}
	stamps := pageStamp.FindAllStringSubmatch(page, -1)
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(line, "|\n "), "|")
		if len(cells) != 4+len(Programs) || strings.HasPrefix(line, "| transport |") || strings.HasPrefix(line, "|--") {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		for i, program := range Programs {
			r := Result{Cell: Cell{cells[0], cells[1], cells[2], program, cells[3]}}
			if text := cells[4+i]; text == "" || text == "not run" {
				continue
			} else if r.Verdict, r.Reason, err = readMark(text, notes); err != nil {
				return nil, fmt.Errorf("%w: %s: %w", errPage, r.Cell, err)
			}
			r.Reason = strings.TrimPrefix(r.Reason, r.String()+": ")
			if n := len(stamps); n > 0 {
				s := stamps[len(results)%n]
				r.Made = provenance.Stamp{Day: s[1], Commit: s[2]}
			}
			results = append(results, r)
		}
	}
	if len(results) == 0 || len(stamps) == 0 {
		return nil, fmt.Errorf("%w: it has %d cells, of %d commits", errPage, len(results), len(stamps))
	}
	return results, nil
}

// readMark is the inverse of symbol.
func readMark(text string, notes map[string]string) (v Verdict, reason string, err error) {
	m := pageMark.FindStringSubmatch(text)
	if m == nil {
		return "", "", fmt.Errorf("%q is no mark", text) //nolint:err113 // for a person
	}
	for v, mark := range marks {
		if mark == m[1] && (m[2] == "" || notes[m[2]] != "") {
			return v, notes[m[2]], nil
		}
	}
	return "", "", fmt.Errorf("%q is no mark, or has no note", text) //nolint:err113 // for a person
}
