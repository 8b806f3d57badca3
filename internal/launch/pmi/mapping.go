package pmi

import (
	"fmt"
	"strconv"
	"strings"
)

const maxProcs = 1 << 22

// ParseMapping parses PMI_process_mapping for a number of procs, and returns the node of each, from
// 0. The format is (vector,(first,nodes,procs),...): each block is for procs procs on each of nodes
// nodes from first on. A mapping that is too short is repeated, as in MPICH. The result is nil for
// an empty mapping or (void). There is no library for it, since the format is MPICH's alone.
func ParseMapping(text string, procs int) ([]int, error) {
	if procs < 0 || procs > maxProcs {
		return nil, fmt.Errorf("a mapping of %d procs, at most %d can be", procs, maxProcs)
	}
	bad := func(why string) error { return fmt.Errorf("PMI_process_mapping %.80q: %s", text, why) }
	inside, found := strings.CutPrefix(strings.Join(strings.Fields(text), ""), "(")
	if inside, more := strings.CutSuffix(inside, ")"); text == "" || found && more && inside == "void" {
		return nil, nil
	}
	inside, closed := strings.CutSuffix(inside, ")")
	rest, isVector := strings.CutPrefix(inside, "vector")
	if !found || !closed || !isVector {
		return nil, bad("is not (vector,...)")
	}
	var blocks [][3]int
	for rest != "" {
		block, ok := strings.CutPrefix(rest, ",(")
		words, after, closed := strings.Cut(block, ")")
		numbers := strings.Split(words, ",")
		if !ok || !closed || len(numbers) != 3 {
			return nil, bad("a block is not (first node,nodes,procs on each)")
		}
		var b [3]int
		for i, word := range numbers {
			n, err := strconv.ParseUint(word, 10, 31)
			if err != nil || n > maxProcs || i > 0 && n == 0 {
				return nil, bad(fmt.Sprintf("%.20q is no number that can be there", word))
			}
			b[i] = int(n)
		}
		blocks = append(blocks, b)
		rest = after
	}
	if len(blocks) == 0 {
		return nil, bad("has no blocks")
	}
	nodes := make([]int, 0, procs)
	for len(nodes) < procs {
		for _, b := range blocks {
			for node := b[0]; node < b[0]+b[1] && len(nodes) < procs; node++ {
				for range min(b[2], procs-len(nodes)) {
					nodes = append(nodes, node)
				}
			}
		}
	}
	return nodes, nil
}
