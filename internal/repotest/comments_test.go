package repotest

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// PackageComments wants each package to say what it is.
func PackageComments(r *Repo) []Problem {
	var problems []Problem
	for dir, files := range r.packages() {
		commented := false
		for _, f := range files {
			commented = commented || strings.TrimSpace(f.AST.Doc.Text()) != ""
		}
		if !commented {
			problems = append(problems, Problem{Path: dir, Text: "the package has no comment"})
		}
	}
	return problems
}

// ExportedComments wants each exported name to be explained by a comment that
// starts with it. In a group of constants or variables a comment for the group is
// enough, and in a group of types one that names the type. What core/mpi calls in a room
// of the engine, that function or that type's method, is explained in core/mpi. The methods
// in standardMethods need no comment.
func ExportedComments(r *Repo) []Problem {
	var problems []Problem
	shown := calledByFace(r)
	for _, f := range r.Go {
		if f.Test || f.Generated || f.AST.Name.Name == "main" {
			continue
		}
		for _, d := range f.AST.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fits(engine, f.Dir) && shown[qualified(f, fn)] {
				continue
			}
			for _, name := range unexplained(d) {
				problems = append(problems, Problem{f.Path, r.line(name.Pos()), name.Name + " has no comment that starts with its name"})
			}
		}
	}
	return problems
}

func unexplained(d ast.Decl) []*ast.Ident {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && exportedReceiver(d) && !explains(d.Doc, d.Name.Name) && !isStandardMethod(d) {
			return []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		return unexplainedSpecs(d)
	}
	return nil
}

func unexplainedSpecs(d *ast.GenDecl) []*ast.Ident {
	var names []*ast.Ident
	group := d.Lparen != token.NoPos && strings.TrimSpace(d.Doc.Text()) != ""
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() && !explains(spec.Doc, spec.Name.Name) && !mentions(d.Doc, spec.Name.Name) {
				names = append(names, spec.Name)
			}
		case *ast.ValueSpec:
			own := spec.Doc.Text() != "" || spec.Comment.Text() != "" || d.Doc.Text() != ""
			if spec.Names[0].IsExported() && !group && !own {
				names = append(names, spec.Names[0])
			}
		}
	}
	return names
}

// standardMethods are the methods that packages fmt, errors and encoding call, with their
// signatures. A comment on one of them mostly repeats what everybody knows.
var standardMethods = map[string][]string{
	"String":        {"() (string)"},
	"Error":         {"() (string)"},
	"Unwrap":        {"() (error)", "() ([]error)"},
	"Is":            {"(error) (bool)"},
	"MarshalText":   {"() ([]byte, error)"},
	"UnmarshalText": {"([]byte) (error)"},
}

func isStandardMethod(d *ast.FuncDecl) bool {
	signature := typesOf(d.Type.Params) + " " + typesOf(d.Type.Results)
	return d.Recv != nil && slices.Contains(standardMethods[d.Name.Name], signature)
}

// typesOf returns the types of parameters or results as text, without their names.
func typesOf(fields *ast.FieldList) string {
	var list []string
	if fields != nil {
		for _, f := range fields.List {
			for range max(1, len(f.Names)) {
				list = append(list, types.ExprString(f.Type))
			}
		}
	}
	return "(" + strings.Join(list, ", ") + ")"
}

// explains reports whether a comment starts with name, after an article.
func explains(doc *ast.CommentGroup, name string) bool {
	words := strings.Fields(doc.Text())
	if len(words) > 1 && (words[0] == "A" || words[0] == "An" || words[0] == "The") {
		words = words[1:]
	}
	return len(words) > 0 && strings.TrimRight(words[0], ",.:;") == name
}

// mentions reports whether a comment has name as a word.
func mentions(doc *ast.CommentGroup, name string) bool {
	return slices.Contains(strings.Fields(doc.Text()), name)
}

// exportedReceiver reports whether d is a function or a method that users see.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}
