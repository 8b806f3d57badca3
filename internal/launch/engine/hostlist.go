package engine

import (
	"fmt"
	"strconv"
	"strings"
)

// maxMachines bounds what a list of machines may name.
const maxMachines = 1 << 16

// ExpandHosts gives the names that a compressed list stands for, as Slurm writes it: n[1-3,7],gpu01 is
// n1, n2, n3, n7 and gpu01. Numbers keep their leading zeros, and brackets may follow each other.
func ExpandHosts(list string) ([]string, error) {
	var names []string
	for rest, more := list, list != ""; more; {
		var word string
		word, rest, more = cutOutside(rest)
		some, err := expandHost(word, maxMachines-len(names))
		if err != nil {
			return nil, fmt.Errorf("list of machines %q: %w", list, err)
		}
		names = append(names, some...)
	}
	return names, nil
}

// cutOutside cuts at the first comma that is not in brackets.
func cutOutside(text string) (before, after string, found bool) {
	depth := 0
	for i, r := range text {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case r == ',' && depth == 0:
			return text[:i], text[i+1:], true
		}
	}
	return text, "", false
}

// expandHost expands one word, to most names.
func expandHost(word string, most int) ([]string, error) {
	if word == "" {
		return nil, fmt.Errorf("there is a comma too much")
	}
	names := []string{""}
	for word != "" {
		prefix, rest, found := strings.Cut(word, "[")
		if strings.ContainsAny(prefix, "]") {
			return nil, fmt.Errorf("a bracket is closed that is not open")
		}
		numbers := []string{""}
		word = rest
		if found {
			inside, after, closed := strings.Cut(rest, "]")
			if !closed {
				return nil, fmt.Errorf("a bracket is not closed")
			}
			var err error
			if numbers, err = expandNumbers(inside, most); err != nil {
				return nil, err
			}
			word = after
		}
		if len(names)*len(numbers) > most {
			return nil, tooMany()
		}
		longer := make([]string, 0, len(names)*len(numbers))
		for _, name := range names {
			for _, n := range numbers {
				longer = append(longer, name+prefix+n)
			}
		}
		names = longer
	}
	if len(names) > most {
		return nil, tooMany()
	}
	return names, nil
}

func tooMany() error { return fmt.Errorf("these are more than %d machines", maxMachines) }

// expandNumbers expands what is in brackets.
func expandNumbers(text string, most int) (numbers []string, err error) {
	for word := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(word, "-")
		if !isRange {
			last = first
		}
		a, e1 := strconv.ParseUint(first, 10, 31)
		b, e2 := strconv.ParseUint(last, 10, 31)
		if e1 != nil || e2 != nil || b < a || len(first) > 10 {
			return nil, fmt.Errorf("%q is no number, and no range of numbers from low to high", word)
		}
		if b-a >= uint64(most) || len(numbers) >= most-int(b-a) {
			return nil, tooMany()
		}
		for n := a; n <= b; n++ {
			numbers = append(numbers, fmt.Sprintf("%0*d", len(first), n))
		}
	}
	return numbers, nil
}

// expandTasks gives the numbers that a list as Slurm writes it stands for: 2(x3),1 is 2, 2, 2 and 1.
func expandTasks(list string) ([]int, error) {
	var tasks []int
	for word := range strings.SplitSeq(list, ",") {
		number, times := word, "1"
		if before, after, found := strings.Cut(word, "(x"); found && strings.HasSuffix(after, ")") {
			number, times = before, strings.TrimSuffix(after, ")")
		}
		n, e1 := strconv.ParseUint(number, 10, 31)
		k, e2 := strconv.ParseUint(times, 10, 31)
		if e1 != nil || e2 != nil {
			return nil, fmt.Errorf("%q is no number of tasks, and no n(xtimes)", word)
		}
		if k > uint64(maxMachines-len(tasks)) {
			return nil, tooMany()
		}
		for range k {
			tasks = append(tasks, int(n))
		}
	}
	return tasks, nil
}
