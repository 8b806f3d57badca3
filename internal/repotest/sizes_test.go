package repotest

import (
	"fmt"
	"go/ast"
)

// The longest file and function, in lines. Tests and generated files may be
// longer.
const (
	MaxFile     = 550
	MaxFunction = 70
)

// Sizes wants files and functions that can be read.
func Sizes(r *Repo) []Problem {
	var problems []Problem
	for _, f := range r.Go {
		if f.Test || f.Generated {
			continue
		}
		if f.Lines > MaxFile {
			problems = append(problems, Problem{Path: f.Path, Text: fmt.Sprintf("%d lines, at most %d", f.Lines, MaxFile)})
		}
		for _, d := range f.AST.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			if n := r.line(fn.End()) - r.line(fn.Pos()) + 1; n > MaxFunction {
				problems = append(problems, Problem{f.Path, r.line(fn.Pos()), fmt.Sprintf("%s has %d lines, at most %d", fn.Name.Name, n, MaxFunction)})
			}
		}
	}
	return problems
}
