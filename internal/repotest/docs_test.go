package repotest

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mapPages are those that lead through the code: each file that they name is there.
var mapPages = []string{"CONTRIBUTING.md", "docs/architecture.md", "docs/howto/"}

var (
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	namedFile    = regexp.MustCompile("`([a-zA-Z0-9_./-]+\\.(?:go|c|h|txt|hcl|md|proto))`")
)

// DocLinks wants the links of pages to lead to a file, and to a heading where they name one, and
// the files that the pages about the code name to be there, by their whole path or by a name that
// some folder has.
func DocLinks(r *Repo) []Problem {
	there, names, headings := map[string]bool{}, map[string]bool{}, map[string][]string{}
	for _, t := range r.Texts {
		names[path.Base(t.Path)] = true
		if path.Ext(t.Path) == ".md" {
			headings[t.Path] = anchors(t.Data)
		}
		for p := t.Path; p != "."; p = path.Dir(p) {
			there[p] = true
		}
	}
	var problems []Problem
	for _, t := range r.Texts {
		if path.Ext(t.Path) != ".md" || strings.Contains(t.Path, "testdata/") {
			continue
		}
		guide := false
		for _, p := range mapPages {
			guide = guide || strings.HasPrefix(t.Path, p)
		}
		for i, line := range bytes.Split(t.Data, []byte("\n")) {
			for _, m := range markdownLink.FindAllSubmatch(line, -1) {
				to, heading, _ := strings.Cut(string(m[1]), "#")
				target := path.Join(path.Dir(t.Path), to)
				if to == "" {
					target = t.Path
				}
				switch {
				case strings.Contains(to, ":") || path.Ext(to) == ".png":
				case !there[target]:
					problems = append(problems, Problem{t.Path, i + 1, "the link to " + to + " leads nowhere"})
				case heading != "" && path.Ext(target) == ".md" && !slices.Contains(headings[target], heading):
					problems = append(problems, Problem{t.Path, i + 1, target + " has no heading for the link to #" + heading})
				}
			}
			for _, m := range namedFile.FindAllSubmatch(line, -1) {
				if name := string(m[1]); guide && !there[name] && !(path.Base(name) == name && names[name]) {
					problems = append(problems, Problem{t.Path, i + 1, "there is no file " + name})
				}
			}
		}
	}
	return problems
}

var headingLine = regexp.MustCompile(`(?m)^#+ (.*)$`)

// anchors are the names by which links lead to the headings of a page.
func anchors(page []byte) (names []string) {
	for _, m := range headingLine.FindAllSubmatch(page, -1) {
		text := markdownLink.ReplaceAllString(string(m[1]), "]")
		names = append(names, strings.Map(func(c rune) rune {
			switch {
			case c == ' ':
				return '-'
			case c == '-' || c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c):
				return unicode.ToLower(c)
			}
			return -1
		}, text))
	}
	return names
}

// docWidth is at which column the prose of pages is wrapped.
const docWidth = 100

// generatedPages are written by programs, which do not wrap.
var generatedPages = []string{"docs/campaign.md", "docs/matrix.md", "docs/conformance/impi.md", "docs/conformance/lam.md"}

// DocWidth wants the prose of pages wrapped, so that a change shows as the lines that it
// changes. Tables and code are as they are.
func DocWidth(r *Repo) []Problem {
	var problems []Problem
	for _, t := range r.Texts {
		if path.Ext(t.Path) != ".md" || slices.Contains(generatedPages, t.Path) || strings.Contains(t.Path, "testdata/") {
			continue
		}
		code := false
		for i, line := range strings.Split(string(t.Data), "\n") {
			text := strings.TrimSpace(line)
			if strings.HasPrefix(text, "```") {
				code = !code
			}
			if code || strings.HasPrefix(text, "|") || strings.HasPrefix(line, "    ") || utf8.RuneCountInString(line) <= docWidth {
				continue
			}
			// One word, or a piece of code, may be longer than a line.
			if strings.Count(withoutSpans.ReplaceAllString(text, "x"), " ") > 1 {
				problems = append(problems, Problem{t.Path, i + 1, fmt.Sprintf("wrap this at column %d", docWidth)})
			}
		}
	}
	return problems
}

var withoutSpans = regexp.MustCompile("`[^`]*`")
