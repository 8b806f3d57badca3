package engine

import (
	"fmt"
	"strconv"
	"strings"
)

// maxMachines bounds what a list of machines may name.
const maxMachines = 1 << 16

func tooMany() error { return fmt.Errorf("these are more than %d machines", maxMachines) }

// expandTasks returns the numbers of a list as Slurm writes it: 2(x3),1 is 2, 2, 2 and 1.
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
