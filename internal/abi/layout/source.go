//go:build !386 && !arm

package layout

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"reflect"
	"strings"
)

const module = "github.com/openimpi/impi/"

// source has what the Go source says about types and constants: reflection knows no comments.
type source struct {
	tree     fs.FS
	packages map[string]*goPackage // by folder
}

type goPackage struct {
	types     map[string]goType
	constants map[string]goConstant
}

type goType struct {
	text string
	spec *ast.StructType
}

type goConstant struct{ text, block string }

// goField is a field, or one of those that are declared together.
type goField struct {
	name          string
	expr          ast.Expr
	above, beside string
}

func newSource(tree fs.FS) *source { return &source{tree: tree, packages: map[string]*goPackage{}} }

func (s *source) open(dir string) (*goPackage, error) {
	if p := s.packages[dir]; p != nil {
		return p, nil
	}
	names, err := fs.Glob(s.tree, path.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	p := &goPackage{types: map[string]goType{}, constants: map[string]goConstant{}}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := fs.ReadFile(s.tree, name)
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			if d, ok := d.(*ast.GenDecl); ok {
				p.add(d)
			}
		}
	}
	s.packages[dir] = p
	return p, nil
}

func (p *goPackage) add(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch x := spec.(type) {
		case *ast.TypeSpec:
			if st, ok := x.Type.(*ast.StructType); ok {
				p.types[x.Name.Name] = goType{plain(x.Doc) + plain(d.Doc), st}
			}
		case *ast.ValueSpec:
			if d.Tok != token.CONST {
				continue
			}
			c := goConstant{text: plain(x.Doc) + plain(x.Comment)}
			if d.Lparen.IsValid() {
				c.block = plain(d.Doc)
			} else {
				c.text += plain(d.Doc)
			}
			for _, n := range x.Names {
				p.constants[n.Name] = c
			}
		}
	}
}

// plain returns the text of a comment, in which empty lines separate paragraphs.
func plain(c *ast.CommentGroup) string { return strings.TrimSpace(c.Text()) }

// constant returns what the source says about a constant, with its name there if that is another
// one.
func (s *source) constant(dir string, k constant) (goConstant, error) {
	p, err := s.open(dir)
	if err != nil {
		return goConstant{}, err
	}
	c, ok := p.constants[k.inGo]
	switch {
	case !ok:
		return c, fmt.Errorf("%s has no constant %s", dir, k.inGo)
	case c.text == "" && !strings.EqualFold(k.c, k.inGo):
		c.text = k.inGo
	case c.text != "" && !strings.HasPrefix(c.text, k.inGo+" ") && !strings.EqualFold(k.c, k.inGo):
		c.text = k.inGo + ": " + c.text
	}
	return c, nil
}

func (s *source) typeOf(t reflect.Type) (goType, error) {
	dir := strings.TrimPrefix(t.PkgPath(), module)
	p, err := s.open(dir)
	if err != nil {
		return goType{}, err
	}
	g, ok := p.types[t.Name()]
	if !ok {
		return g, fmt.Errorf("%s has no struct %s", dir, t.Name())
	}
	return g, nil
}

func (s *source) typeComment(t reflect.Type) (string, error) {
	g, err := s.typeOf(t)
	return g.text, err
}

// fields returns what the source says about each field of a struct.
func (s *source) fields(t reflect.Type) ([]goField, error) {
	g, err := s.typeOf(t)
	if err != nil {
		return nil, err
	}
	var fields []goField
	for _, f := range g.spec.Fields.List {
		if len(f.Names) == 0 {
			fields = append(fields, goField{expr: f.Type})
		}
		for i, n := range f.Names {
			x := goField{name: n.Name, expr: f.Type}
			if i == 0 {
				x.above = plain(f.Doc)
			}
			if i == len(f.Names)-1 {
				x.beside = plain(f.Comment)
			}
			fields = append(fields, x)
		}
	}
	if len(fields) != t.NumField() {
		return nil, fmt.Errorf("the source has %d fields, and the type that was compiled %d", len(fields), t.NumField())
	}
	for i, f := range fields {
		if f.name != "" && f.name != t.Field(i).Name {
			return nil, fmt.Errorf("field %d is %s in the source, and %s in the type that was compiled", i, f.name, t.Field(i).Name)
		}
	}
	return fields, nil
}
