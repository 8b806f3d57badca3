package repotest

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// naming are the folders whose code may name transports, each with the reason. All other
// packages treat transports alike: they know what a transport says of itself, and never its
// name.
var naming = map[string]string{
	"transports/...":           "the transports themselves",
	"cmd/impi-transport-...":   "their programs; that of chaos has a list of those that it can wrap",
	"cmd/impi-bench":           "measures transports by name",
	"examples/...":             "programs and plugins of users",
	"internal/campaign/...":    "writes job files for tests",
	"internal/conformance/iut": "runs impi-node as a program under test, by one transport",
	"internal/matrix/...":      "runs each transport with each fault",
	"internal/netns":           "tells ip which protocol to forbid",
	"internal/performance":     "the arguments of impi-bench for published figures",
	"internal/sim/...":         "names what nobody dials",
	"internal/wan/...":         "measures tcp and quic over emulated lines",
}

// namingFiles are files elsewhere that may name transports, each with the reason.
var namingFiles = map[string]string{
	"cmd/impi-node/builtin.go":  "the list of those that are built in",
	"cmd/impi-node/cert.go":     "an example of a job file for the certificates that it has made",
	"config/schema.go":          "examples of what an operator writes",
	"config/transport.go":       "an example of a variable: libfabric has a provider called tcp",
	"internal/listen/listen.go": "the network of an address, as package net calls it",
	"plugins/sdk/hand.go":       "an example of a job file in the help of a plugin",
}

func mayName(f *GoFile) bool {
	for p := range naming {
		if fits(p, f.Dir) || strings.HasSuffix(p, "-...") && strings.HasPrefix(f.Dir, strings.TrimSuffix(p, "...")) {
			return true
		}
	}
	return namingFiles[f.Path] != "" || strings.HasSuffix(f.Dir, "test")
}

// TransportNames wants a further built-in transport to be a folder and an entry of one list
// for the node: no other code names one, but for what naming and namingFiles list, tests and the
// packages that help them, whose names end in "test". What package net and firewalls call
// protocols is no transport's name.
func TransportNames(r *Repo) []Problem {
	names := r.transportNames()
	var problems []Problem
	for _, f := range r.Go {
		if f.Test || f.Generated || mayName(f) {
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

// transportNames are the folders of transports, but for what helps them.
func (r *Repo) transportNames() (names []string) {
	for dir := range r.packages() {
		if parent, name := path.Split(dir); parent == "transports/" && name != "support" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// networkNames are the strings that functions which dial and listen take, and those that stand
// for the protocol of an address or a firewall's rule.
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
			if key, ok := x.Key.(*ast.Ident); ok && (key.Name == "Net" || key.Name == "Proto") {
				note(x.Value)
			}
		case *ast.BinaryExpr:
			if f, ok := x.X.(*ast.SelectorExpr); ok && (f.Sel.Name == "Proto" || f.Sel.Name == "network") {
				note(x.Y)
			}
		}
		return true
	})
	return found
}
