package repotest

import (
	"go/ast"
	"strconv"
)

// TestHabits wants tests that wait for events instead of sleeping, and that say
// why they skip.
func TestHabits(r *Repo) []Problem {
	var problems []Problem
	for _, f := range r.Go {
		if !f.Test {
			continue
		}
		clock := ""
		for _, spec := range f.AST.Imports {
			if name, _ := strconv.Unquote(spec.Path.Value); name == "time" {
				clock = localName(spec, "time")
			}
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if text := badHabit(call, clock); text != "" {
				problems = append(problems, Problem{f.Path, r.line(call.Pos()), text})
			}
			return true
		})
	}
	return problems
}

func badHabit(call *ast.CallExpr, clock string) string {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	x, _ := sel.X.(*ast.Ident)
	switch {
	case x != nil && clock != "" && x.Name == clock && sel.Sel.Name == "Sleep":
		return "a test waits for an event, it does not sleep"
	case sel.Sel.Name == "SkipNow":
		return "say why: Skip with a reason"
	case sel.Sel.Name == "Skip" && len(call.Args) == 0:
		return "say why this is skipped"
	}
	return ""
}
