package repotest

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// mapped are the folders whose own folders are in the map of docs/architecture.md.
var mapped = []string{"core", "internal", "internal/engine", "internal/site", "internal/connmgr", "internal/spawner", "internal/operator", "plugins", "plugins/sdk", "plugins/sdk/support", "plugins/sdk/transports"}

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
		for _, parent := range mapped {
			rest, below := strings.CutPrefix(dir, parent+"/")
			name, _, _ := strings.Cut(rest, "/")
			folder := parent + "/" + name
			if !below || told[folder] || named[folder] || named[name] {
				continue
			}
			told[folder] = true
			problems = append(problems, Problem{Path: folder, Text: "the map in " + architecture + " does not say what this folder is for"})
		}
	}
	return problems
}
