package repotest

import (
	"fmt"
	"go/ast"
	"go/printer"
	"strings"
)

// MaxCopied is how many lines the body of a function may have, braces included and without comments
// and empty lines, if there is another function with the same one.
const MaxCopied = 8

// Copies wants a function to be written once: in tests as well, but not in examples, of which each
// is read by itself.
func Copies(r *Repo) []Problem {
	var problems []Problem
	first := map[string]Problem{} // by the text of a body, where it is and the function's name
	for _, f := range r.Go {
		if f.Generated || fits("examples/...", f.Dir) {
			continue
		}
		for _, d := range f.AST.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			body, lines := r.body(fn)
			if lines <= MaxCopied {
				continue
			}
			here := Problem{f.Path, r.line(fn.Pos()), fn.Name.Name}
			if there, twice := first[body]; twice {
				here.Text = fmt.Sprintf("%s is the function %s of %s:%d once more: write it once", here.Text, there.Text, there.Path, there.Line)
				problems = append(problems, here)
			} else {
				first[body] = here
			}
		}
	}
	return problems
}

// body is the text of a function's body without comments, empty lines and indentation, and its
// lines.
func (r *Repo) body(fn *ast.FuncDecl) (text string, lines int) {
	if r.line(fn.Body.End())-r.line(fn.Body.Pos()) < MaxCopied {
		return "", 0 // too short to be looked at
	}
	var printed, b strings.Builder
	if err := printer.Fprint(&printed, r.Fset, fn.Body); err != nil {
		return "", 0 // nothing that the parser has read
	}
	for line := range strings.Lines(printed.String()) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
			lines++
		}
	}
	return b.String(), lines
}
