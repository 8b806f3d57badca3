package abi

import (
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// namesFile has what core/mpi has of the packages below by the same names, with their comments.
const namesFile = "core/mpi/names.go"

// namesTable says which names of which packages those are: types, constants and variables.
//
//go:embed names.txt
var namesTable string

// Names returns the text of namesFile. A type of faceTypes is one of its own, with the fields of
// the other if all of them are exported. The other types are the same ones.
func Names(root fs.FS) (map[string]string, error) {
	var body strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(namesTable, "\n\t", " ")) {
		pkg, names, _ := strings.Cut(line, ": ")
		x := &renamer{pkg: path.Base(pkg), wanted: strings.Fields(names)}
		files, err := fs.Glob(root, pkg+"/*.go")
		for _, file := range files {
			if err == nil && !strings.HasSuffix(file, "_test.go") {
				err = x.file(root, file)
			}
		}
		if err == nil && len(x.wanted) > 0 {
			err = fmt.Errorf("names.txt: %s has no %v", pkg, x.wanted)
		}
		if err != nil {
			return nil, err
		}
		body.WriteString(x.text.String())
	}
	text, err := faceFile("names.txt", body.String())
	return map[string]string{namesFile: text}, err
}

type renamer struct {
	pkg    string
	wanted []string
	text   strings.Builder
}

func (r *renamer) file(root fs.FS, name string) error {
	source, err := fs.ReadFile(root, name)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, d := range file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok != token.IMPORT {
			r.declaration(g, source)
		}
	}
	return nil
}

func (r *renamer) declaration(g *ast.GenDecl, source []byte) {
	var specs strings.Builder
	for _, s := range g.Specs {
		switch s := s.(type) {
		case *ast.ValueSpec:
			for _, id := range s.Names {
				if r.takes(id) {
					fmt.Fprintf(&specs, "%s%s = %s.%s %s\n", comment(s.Doc), id.Name, r.pkg, id.Name, strings.TrimSpace(comment(s.Comment)))
				}
			}
		case *ast.TypeSpec:
			if r.takes(s.Name) {
				specs.WriteString(s.Name.Name + " " + r.typ(s, source) + "\n")
			}
		}
	}
	switch {
	case specs.Len() == 0:
	case g.Lparen.IsValid() || g.Tok != token.TYPE && strings.Count(specs.String(), "\n") > 1:
		fmt.Fprintf(&r.text, "\n%s%s (\n%s)\n", comment(g.Doc), g.Tok, specs.String())
	default:
		fmt.Fprintf(&r.text, "\n%s%s %s", comment(g.Doc), g.Tok, specs.String())
	}
}

func (r *renamer) takes(id *ast.Ident) bool {
	i := slices.Index(r.wanted, id.Name)
	if i >= 0 {
		r.wanted = slices.Delete(r.wanted, i, i+1)
	}
	return i >= 0
}

func (r *renamer) typ(s *ast.TypeSpec, source []byte) string {
	name := s.Name.Name
	_, value := faceTypes[name]
	_, pointer := faceTypes["*"+name]
	if !value && !pointer {
		return "= " + r.pkg + "." + name
	}
	open := false // all fields are exported
	if x, ok := s.Type.(*ast.StructType); ok {
		open = !slices.ContainsFunc(x.Fields.List, func(f *ast.Field) bool { return len(f.Names) == 0 || !f.Names[0].IsExported() })
	}
	if _, ok := s.Type.(*ast.ArrayType); ok || open {
		return strings.ReplaceAll(string(source[s.Type.Pos()-1:s.Type.End()-1]), "proc.", "")
	}
	return r.pkg + "." + name
}

func comment(c *ast.CommentGroup) string {
	if c == nil {
		return ""
	}
	var b strings.Builder
	for _, line := range c.List {
		b.WriteString(line.Text + "\n")
	}
	return b.String()
}
