package repotest

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// nameless are the packages that treat all transports alike: they know what a transport
// says of itself, and never its name.
var nameless = []string{"core/...", "internal/routes/...", "internal/procs/...", "internal/site/...", "internal/connmgr/...", "internal/spawner/...", "internal/operator/...", "internal/node/...", "internal/links/...", "internal/rendezvous/...", "internal/names/...", "plugins/host/...", "plugins/sdk/proto/..."}

// TransportNames wants a further built-in transport to be a folder and an entry of one list:
// no other code names one, but for tests and the packages that help them, whose names end in
// "test". What package net calls its networks is no transport's name.
func TransportNames(r *Repo) []Problem {
	names := r.transportNames()
	var problems []Problem
	for _, f := range r.Go {
		if f.Test || f.Generated || strings.HasSuffix(f.Dir, "test") || !slices.ContainsFunc(nameless, func(p string) bool { return fits(p, f.Dir) }) {
			continue
		}
		networks := networkNames(f.AST)
		ast.Inspect(f.AST, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING || networks[lit] {
				return true
			}
			text, _ := strconv.Unquote(lit.Value)
			for _, name := range names {
				if text == name || strings.Contains(text, strconv.Quote(name)) {
					problems = append(problems, Problem{f.Path, r.line(lit.Pos()),
						"transport " + name + " is named: ask for what it says of itself (transports.Capabilities, config.Builtin)"})
				}
			}
			return true
		})
	}
	return problems
}

// transportNames are those of the plugins in cmd.
func (r *Repo) transportNames() (names []string) {
	for dir := range r.packages() {
		if name, ok := strings.CutPrefix(path.Base(dir), "impi-transport-"); ok && path.Dir(dir) == "cmd" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// networkNames are the strings that functions which dial and listen take.
func networkNames(f *ast.File) map[*ast.BasicLit]bool {
	found := map[*ast.BasicLit]bool{}
	note := func(list ...ast.Expr) {
		for _, x := range list {
			if lit, ok := x.(*ast.BasicLit); ok {
				found[lit] = true
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.CallExpr:
			name := ""
			switch f := x.Fun.(type) {
			case *ast.SelectorExpr:
				name = f.Sel.Name
			case *ast.Ident:
				name = f.Name
			}
			if name = strings.ToLower(name); strings.HasPrefix(name, "dial") || strings.HasPrefix(name, "listen") {
				note(x.Args...)
			}
		case *ast.KeyValueExpr:
			if key, ok := x.Key.(*ast.Ident); ok && key.Name == "Net" {
				note(x.Value)
			}
		}
		return true
	})
	return found
}
