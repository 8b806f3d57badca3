package repotest

import (
	"slices"
	"strings"
)

var topLevel = []string{"cmd", "config", "core", "docs", "examples", "include", "internal", "plugins", "transports"}

// TopLevel wants the folders at the top to be exactly those of the design.
func TopLevel(r *Repo) []Problem {
	var problems []Problem
	for _, name := range r.Top {
		if !slices.Contains(topLevel, name) {
			problems = append(problems, Problem{Path: name, Text: "no folder at the top but " + strings.Join(topLevel, ", ")})
		}
	}
	for _, name := range topLevel {
		if !slices.Contains(r.Top, name) {
			problems = append(problems, Problem{Path: name, Text: "this folder is missing"})
		}
	}
	return problems
}
