package repotest

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
)

// engine is what core/mpi shows to programs, in rooms.
const engine = "internal/engine/..."

// The most methods of a receiver and the most files of a package that somebody can know.
const (
	MaxMethods = 40
	MaxFiles   = 30
)

// MaxNode is the most lines of internal/node and all below it: it puts the rooms beside it
// together, and what is a subject of its own is one of them.
const MaxNode = 4999

// Rooms wants packages with few files, types with few methods, and a small node. core/mpi is the
// list of what MPI has: its methods are counted by the standard, and Face wants them short.
func Rooms(r *Repo) []Problem {
	files, methods, lines := map[string]int{}, map[string]int{}, map[string]int{}
	for _, f := range r.Go {
		if f.Test || f.Generated {
			continue
		}
		files[f.Dir]++
		if fits(nodeRoom+"/...", f.Dir) {
			lines[nodeRoom] += f.Lines
		}
		for _, d := range f.AST.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil && f.Dir != "core/mpi" {
				methods[f.Dir+"."+receiver(fn)]++
			}
		}
	}
	return slices.Concat(tooMany(files, MaxFiles, "files"), tooMany(methods, MaxMethods, "methods"), tooMany(lines, MaxNode, "lines"))
}

func tooMany(counts map[string]int, most int, what string) []Problem {
	var problems []Problem
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[name]; n > most {
			problems = append(problems, Problem{Path: name, Text: fmt.Sprintf("%d %s, at most %d", n, what, most)})
		}
	}
	return problems
}

// receiver is the name of the type that a method is of.
func receiver(fn *ast.FuncDecl) string {
	name := "?"
	ast.Inspect(fn.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "?" {
			name = id.Name
		}
		return true
	})
	return name
}

// faceConversions is the file of core/mpi that turns its types into the engine's.
const faceConversions = "core/mpi/engine.go"

// Face wants core/mpi to say what there is, and the engine to do it: a function calls one of the
// engine's and gives what that gives. Generated ones do so, and tell of the error.
func Face(r *Repo) []Problem {
	var problems []Problem
	for _, f := range r.Go {
		if f.Test || f.Generated || f.Dir != "core/mpi" || f.Path == faceConversions {
			continue
		}
		for _, d := range f.AST.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && (!plain(fn.Body) || !fn.Name.IsExported()) {
				problems = append(problems, Problem{f.Path, r.line(fn.Pos()), fn.Name.Name + " does more than to call the engine"})
			}
		}
	}
	return problems
}

// plain reports whether a body is a call, or one and the return of what came of it.
func plain(body *ast.BlockStmt) bool {
	for _, s := range body.List {
		switch s.(type) {
		case *ast.ReturnStmt, *ast.ExprStmt, *ast.AssignStmt:
		default:
			return false
		}
	}
	return len(body.List) <= 2
}

// calledByFace has what core/mpi calls in the engine: functions as "proc.Current", methods as
// "proc.Comm.Size".
func calledByFace(r *Repo) map[string]bool {
	called, behind := map[string]bool{}, engineTypes(r)
	for _, f := range r.Go {
		if f.Test || f.Dir != "core/mpi" {
			continue
		}
		for _, d := range f.AST.Decls {
			types := typesIn(d, behind)
			ast.Inspect(d, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if x, ok := s.X.(*ast.Ident); ok {
					called[x.Name+"."+s.Sel.Name] = true
				}
				for t := range types {
					called[t+"."+s.Sel.Name] = true
				}
				return true
			})
		}
	}
	return called
}

// engineTypes has the types of the engine behind those of core/mpi: for "Comm" it has "proc.Comm".
func engineTypes(r *Repo) map[string][]string {
	behind := map[string][]string{}
	for _, f := range r.Go {
		if f.Test || f.Dir != "core/mpi" {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if t, ok := n.(*ast.TypeSpec); ok {
				behind[t.Name.Name] = slices.Collect(maps.Keys(typesIn(t.Type, nil)))
			}
			return true
		})
	}
	return behind
}

// typesIn has the types of the engine that n names, as they are or by those of core/mpi.
func typesIn(n ast.Node, behind map[string][]string) map[string]bool {
	types := map[string]bool{}
	ast.Inspect(n, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.Ident:
			for _, t := range behind[x.Name] {
				types[t] = true
			}
		case *ast.SelectorExpr:
			if p, ok := x.X.(*ast.Ident); ok {
				types[p.Name+"."+x.Sel.Name] = true
			}
		}
		return true
	})
	return types
}

// qualified is the name of a function as calledByFace has it.
func qualified(f *GoFile, fn *ast.FuncDecl) string {
	name := f.AST.Name.Name + "."
	if fn.Recv != nil {
		name += receiver(fn) + "."
	}
	return name + fn.Name.Name
}
