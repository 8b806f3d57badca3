package repotest

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// mapped are the folders of which all packages are in the map of docs/architecture.md, down to the
// third level; deeper ones are a matter of the packages above them.
var mapped = []string{"core", "internal", "plugins", "transports"}

// unmapped are the names of folders that need no explanation: what prints or runs the package above
// it as a program, and what tests of that package need.
var unmapped = regexp.MustCompile("^(run|print|list|testdata|[a-z]+test)$")

const (
	architecture = "docs/architecture.md"
	mapHeading   = "\n## The map\n"
)

var codeSpan = regexp.MustCompile("`([a-z0-9/]+)`")

// Map wants docs/architecture.md to say what is in each folder: its map names it in backquotes, by
// its path or, behind another one of a list, by its own name.
func Map(r *Repo) []Problem {
	i := slices.IndexFunc(r.Texts, func(t Text) bool { return t.Path == architecture })
	if i < 0 {
		return []Problem{{Path: architecture, Text: "this page is missing"}}
	}
	_, page, found := bytes.Cut(r.Texts[i].Data, []byte(mapHeading))
	if !found {
		return []Problem{{Path: architecture, Text: "it has no section" + strings.TrimSuffix(strings.TrimPrefix(mapHeading, "\n##"), "\n")}}
	}
	page, _, _ = bytes.Cut(page, []byte("\n## "))
	named := map[string]bool{}
	for _, m := range codeSpan.FindAllSubmatch(page, -1) {
		named[string(m[1])] = true
	}
	var problems []Problem
	told := map[string]bool{}
	for dir := range r.packages() {
		parts := strings.Split(dir, "/")
		if !slices.Contains(mapped, parts[0]) {
			continue
		}
		for n := 2; n <= min(len(parts), 3); n++ {
			folder, name := strings.Join(parts[:n], "/"), parts[n-1]
			if told[folder] || named[folder] || named[name] || named[parts[n-2]+"/"+name] || unmapped.MatchString(name) {
				continue
			}
			told[folder] = true
			problems = append(problems, Problem{Path: folder, Text: "the map in " + architecture + " does not say what this folder is for"})
		}
	}
	return problems
}
