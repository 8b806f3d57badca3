package repotest

import (
	"go/ast"
	"slices"
	"strconv"
)

// impure are the packages of the standard library that core must not know:
// sockets, files, randomness, logging, locks. Words that are shared with another process,
// and values that whoever finds them finds alike, are of sync/atomic: nobody waits for those.
var impure = []string{
	"net/...", "os/...", "log/...", "math/rand/...", "crypto/rand", "syscall", "io/ioutil", "plugin", "sync",
}

// clockNames are what package time has beyond types and arithmetic.
var clockNames = []string{
	"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer",
}

// PureCore wants core, and what of the SDK it is built upon, to compute only: time and entropy are
// its arguments, and it starts no goroutines.
func PureCore(r *Repo) []Problem {
	var problems []Problem
	for _, f := range r.Go {
		if f.Test || !isPure(f.Dir) {
			continue
		}
		report := func(n ast.Node, text string) {
			problems = append(problems, Problem{f.Path, r.line(n.Pos()), text})
		}
		clock := ""
		for _, spec := range f.AST.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			if name != "net/netip" && fitsAny(impure, name) {
				report(spec, "core does not import "+name)
			}
			if name == "time" {
				clock = localName(spec, "time")
			}
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				report(n, "core starts no goroutine")
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && clock != "" && x.Name == clock && slices.Contains(clockNames, n.Sel.Name) {
					report(n, "core has no clock: time."+n.Sel.Name)
				}
			}
			return true
		})
	}
	return problems
}

// localName is the name of an import in its file.
func localName(spec *ast.ImportSpec, otherwise string) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	return otherwise
}
