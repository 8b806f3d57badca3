package repotest

import (
	"bytes"
	"regexp"
)

// machinePath matches absolute paths that exist on somebody's machine only.
var machinePath = regexp.MustCompile(`(^|[\s"'=(:,])/(work|root|home|Users|tmp/[a-z]+)/[\w.-]`)

// MachinePaths wants no file to name a place on the machine where it was
// written.
func MachinePaths(r *Repo) []Problem {
	var problems []Problem
	for _, text := range r.Texts {
		for i, line := range bytes.Split(text.Data, []byte("\n")) {
			if m := machinePath.Find(line); m != nil {
				problems = append(problems, Problem{text.Path, i + 1, "a path of somebody's machine: " + string(m)})
			}
		}
	}
	return problems
}
