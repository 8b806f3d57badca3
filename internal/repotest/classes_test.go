package repotest

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// ErrorClasses wants each exported sentinel of core to be named in core/mpierr,
// whose table gives it an MPI error class. core/mpi, which imports mpierr, gives
// the classes of its own.
func ErrorClasses(r *Repo) []Problem {
	used := map[string]bool{}
	for _, f := range r.packages()["core/mpierr"] {
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok {
					used[x.Name+"."+sel.Sel.Name] = true
				}
			}
			return true
		})
	}
	var problems []Problem
	for dir, files := range r.packages() {
		if !isPure(dir) || strings.HasPrefix(dir, "internal/") || slices.Contains([]string{"core/mpi", "core/mpierr"}, dir) {
			continue
		}
		for _, f := range files {
			for _, name := range sentinels(f.AST) {
				if id := path.Base(dir) + "." + name.Name; !used[id] {
					problems = append(problems, Problem{f.Path, r.line(name.Pos()), id + " has no class in core/mpierr"})
				}
			}
		}
	}
	return problems
}

// sentinels are the exported package variables called Err....
func sentinels(f *ast.File) []*ast.Ident {
	var names []*ast.Ident
	for _, d := range f.Decls {
		gen, ok := d.(*ast.GenDecl)
		if !ok || gen.Tok != token.VAR {
			continue
		}
		for _, spec := range gen.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names {
				if strings.HasPrefix(name.Name, "Err") && name.IsExported() {
					names = append(names, name)
				}
			}
		}
	}
	return names
}
