package repotest

import (
	"go/ast"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// HabitsOfTests wants tests that wait for events instead of sleeping, that say why they
// skip, and that install nothing.
func HabitsOfTests(r *Repo) []Problem {
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
			if text := badHabit(call, clock, fits(sdk+"/...", f.Dir)); text != "" {
				problems = append(problems, Problem{f.Path, r.line(call.Pos()), text})
			}
			return true
		})
	}
	return problems
}

// remedied is how the SDK's tests, which have no internal/skips, say what they lack and what helps.
var remedied = regexp.MustCompile(`^NOT RUN: [^:]+: [^:]+$`)

func badHabit(call *ast.CallExpr, clock string, ofSDK bool) string {
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
	case (sel.Sel.Name == "Skip" || sel.Sel.Name == "Skipf") && strings.HasPrefix(literal(call.Args[0]), "NOT RUN") && !(ofSDK && remedied.MatchString(literal(call.Args[0]))):
		return "say what is missing, and the remedy, by internal/skips: make test lists it"
	case x != nil && x.Name == "exec" && slices.ContainsFunc(call.Args, installs):
		return "a test installs nothing: skip it by internal/skips, and have .ci/run install what it needs"
	}
	return ""
}

// installs tells the commands that change what is installed on the machine.
func installs(arg ast.Expr) bool {
	return slices.Contains([]string{"apt", "apt-get", "dnf", "npm", "pip", "pip3"}, literal(arg))
}

// literal is the text of a string in the source, or "".
func literal(e ast.Expr) string {
	if l, ok := e.(*ast.BasicLit); ok {
		text, _ := strconv.Unquote(l.Value)
		return text
	}
	return ""
}
