package spawn

import (
	"fmt"
	"strconv"
	"strings"
)

const maxRanges = 256

// Soft is the set of numbers of procs that a command may be started with (MPI-4.1, 11.8.4, info key
// soft): single numbers and ranges from:to or from:to:step, separated by commas, as in 1:16:2,20.
type Soft []softRange

type softRange struct{ from, to, step int }

// ReadSoft parses an info key soft (MPI-4.1, 11.8.4). Without one, the set has only the number
// procs. problem describes a fault in it.
func ReadSoft(text string, procs int) (s Soft, problem string) {
	if text == "" {
		return Soft{{procs, procs, 1}}, ""
	}
	wrong := fmt.Sprintf("soft is %q, which is no list of numbers and ranges such as 1:16:2,20", text)
	for part := range strings.SplitSeq(text, ",") {
		var n [3]int
		words := strings.Split(part, ":")
		if len(words) > len(n) || len(s) == maxRanges {
			return nil, wrong
		}
		for i, w := range words {
			v, err := strconv.Atoi(strings.TrimSpace(w))
			if err != nil || v > MaxProcs || v < -MaxProcs {
				return nil, wrong
			}
			n[i] = v
		}
		r := softRange{n[0], n[0], 1}
		if len(words) > 1 {
			r.to = n[1]
		}
		if len(words) > 2 {
			r.step = n[2]
		}
		if r.step == 0 {
			return nil, wrong
		}
		s = append(s, r)
	}
	return s, ""
}

// LargestUpTo returns the largest number of the set that is at most limit, or -1 if there is none.
func (s Soft) LargestUpTo(limit int) int {
	best := -1
	for _, r := range s {
		for v := r.from; r.step > 0 && v <= r.to || r.step < 0 && v >= r.to; v += r.step {
			if v >= 0 && v <= limit {
				best = max(best, v)
			}
		}
	}
	return best
}
