package config

import "strings"

// nearest returns the candidate that word was probably meant to be, or "".
func nearest(word string, candidates []string) string {
	best, bestCost := "", max(1, len(word)/3)+1
	for _, c := range candidates {
		if strings.EqualFold(word, c) {
			return c
		}
		if len(word) < 3 {
			continue
		}
		if cost := edits(word, c); cost < bestCost {
			best, bestCost = c, cost
		}
	}
	return best
}

// edits counts the letters to insert, remove, replace or swap with their
// neighbour that turn a into b. By hand, as agext/levenshtein counts a swap twice.
func edits(a, b string) int {
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			differ := 1
			if a[i-1] == b[j-1] {
				differ = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+differ)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}

func meant(word string, known []string) string { return suggest(nearest(word, known), known) }

func suggest(near string, known []string) string {
	all := "known here: " + strings.Join(known, ", ")
	if len(known) == 0 {
		all = "none is known here"
	}
	if near != "" {
		return "did you mean " + quote(near) + "? (" + all + ")"
	}
	return all
}
