// Package hostlist reads and writes lists of hosts in Slurm's compressed form:
// "node[001-064,070],gpu[1-2]". It is ours as the faults of job files show the problem and the
// remedy, and as a list must not grow beyond a bound while it is read.
package hostlist

import (
	"fmt"
	"strconv"
	"strings"
)

// Error says what is wrong with a list, and what to write instead.
type Error struct{ Problem, Remedy string }

func (e *Error) Error() string { return e.Problem + "; " + e.Remedy }

// maxDigits is how many digits a number may have to fit into an int64.
const maxDigits = 18

// Expand returns the hosts of a list in order; there may be at most most. Items are separated by
// commas. Brackets hold numbers and ranges of them; if a name has several, the first changes
// slowest. The number of digits of a range's first number is the least for all of them: [08-11] is
// 08, 09, 10, 11. A host may be listed several times. The error is an *Error.
func Expand(list string, most int) ([]string, error) {
	items, err := split(list)
	if err != nil {
		return nil, err
	}
	var hosts []string
	for _, item := range items {
		p, err := parse(item)
		if err != nil {
			return nil, err
		}
		if n := p.size(most + 1); n > most-len(hosts) {
			return nil, &Error{fmt.Sprintf("the list has more than %d hosts", most), "write a shorter list"}
		}
		hosts = p.appendTo(hosts, "")
	}
	return hosts, nil
}

func split(list string) ([]string, error) {
	var items []string
	from, open := 0, -1
	for i, c := range list + "," {
		switch {
		case c == '[' && open >= 0:
			return nil, &Error{fmt.Sprintf("there is a bracket within brackets in %q", list[from:i+1]), "write it like node[1-4,7]"}
		case c == '[':
			open = i
		case c == ']' && open < 0:
			return nil, &Error{fmt.Sprintf("%q closes a bracket that was not opened", list[from:i+1]), "write it like node[1-4,7]"}
		case c == ']':
			open = -1
		case c == ',' && i == len(list) && open >= 0:
			return nil, &Error{fmt.Sprintf("the bracket in %q is not closed", list[from:]), "write it like node[1-4,7]"}
		case c == ',' && open < 0:
			item := strings.TrimSpace(list[from:i])
			if item == "" {
				return nil, &Error{"there is no host between two commas, or beside one", "write it like node[1-4,7],gpu1"}
			}
			if strings.ContainsAny(item, " \t\r\n") {
				return nil, &Error{fmt.Sprintf("there is a blank in %q", item), "write commas between hosts"}
			}
			items, from = append(items, item), i+1
		}
	}
	return items, nil
}

// pattern is one item of a list: text, then numbers, and the rest.
type pattern struct {
	text   string
	ranges []numbers
	rest   *pattern // nil if there are no numbers
}

type numbers struct {
	low, high int64
	width     int // least number of digits
}

func parse(item string) (*pattern, error) {
	text, behind, found := strings.Cut(item, "[")
	p := &pattern{text: text}
	if !found {
		return p, nil
	}
	inside, rest, _ := strings.Cut(behind, "]") // split has checked that there is one
	for _, word := range strings.Split(inside, ",") {
		r, err := parseRange(word)
		if err != nil {
			return nil, err
		}
		p.ranges = append(p.ranges, r)
	}
	var err error
	p.rest, err = parse(rest)
	return p, err
}

func parseRange(word string) (numbers, error) {
	low, high, found := strings.Cut(word, "-")
	if !found {
		high = low
	}
	for _, digits := range []string{low, high} {
		if digits == "" || strings.Trim(digits, "0123456789") != "" || len(digits) > maxDigits {
			return numbers{}, &Error{
				fmt.Sprintf("%q in brackets is neither a number of at most %d digits nor a range of such", word, maxDigits),
				"write it like [1-4,7]; no brackets are around addresses",
			}
		}
	}
	r := numbers{width: len(low)}
	r.low, _ = strconv.ParseInt(low, 10, 64) // these are digits, and few
	r.high, _ = strconv.ParseInt(high, 10, 64)
	if r.low > r.high {
		return numbers{}, &Error{fmt.Sprintf("the range %s runs backwards", word), fmt.Sprintf("write %s-%s", high, low)}
	}
	return r, nil
}

// size returns how many hosts p stands for, or most if there are more.
func (p *pattern) size(most int) int {
	if p.rest == nil {
		return 1
	}
	n := int64(0)
	for _, r := range p.ranges {
		n = min(n+min(r.high-r.low, int64(most))+1, int64(most))
	}
	behind := int64(p.rest.size(most))
	if n > int64(most)/behind {
		return most
	}
	return int(n * behind)
}

func (p *pattern) appendTo(hosts []string, prefix string) []string {
	prefix += p.text
	if p.rest == nil {
		return append(hosts, prefix)
	}
	for _, r := range p.ranges {
		for n := r.low; n <= r.high; n++ {
			hosts = p.rest.appendTo(hosts, prefix+fmt.Sprintf("%0*d", r.width, n))
		}
	}
	return hosts
}
