package repotest

import (
	"go/ast"
	"regexp"
	"strings"
)

// The contract's checks skip what a kind of link has not; CI fails on a skip that its file does not
// allow, after half an hour.
const (
	contractDir = sdk + "/transports/transporttest"
	skipsFile   = ".ci/skips"
)

// unwanted matches reasons that have to fail in CI: an error, and a built-in transport whose
// packets do not go where the check loses some.
var unwanted = regexp.MustCompile(`: %v$|^no packet has come by the path`)

// verbs are what fmt replaces, where an example of the text is wanted.
var verbs = regexp.MustCompile(`%[a-z]`)

// ContractSkips wants each reason for which a check of the transports' contract is skipped to be
// allowed in CI.
func ContractSkips(r *Repo) []Problem {
	allowed := allowedReasons(r)
	var problems []Problem
	for _, f := range r.Go {
		if f.Test || f.Dir != contractDir {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "Skipf" || len(call.Args) == 0 {
				return true
			}
			reason := literal(call.Args[0])
			if unwanted.MatchString(reason) {
				return true
			}
			for _, a := range allowed {
				if a.MatchString(verbs.ReplaceAllString(reason, "x")) {
					return true
				}
			}
			problems = append(problems, Problem{f.Path, r.line(call.Pos()), skipsFile + " does not allow this reason: add it with the tests that have it, or CI fails"})
			return true
		})
	}
	return problems
}

// allowedReasons returns the second column of skipsFile.
func allowedReasons(r *Repo) (list []*regexp.Regexp) {
	for _, t := range r.Texts {
		if t.Path != skipsFile {
			continue
		}
		for line := range strings.Lines(string(t.Data)) {
			_, reason, has := strings.Cut(strings.TrimSpace(line), " ")
			if has && line[0] != '#' {
				list = append(list, regexp.MustCompile("^(?:"+strings.TrimSpace(reason)+")"))
			}
		}
	}
	return list
}
