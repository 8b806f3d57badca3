// Package exported lists what programs can name of a package, for tests that hold it against a
// file: who compiles against the package breaks when a line is lost.
package exported

import (
	"bytes"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Packages reads packages of this module, or of the SDK's, as their importers see them, by their
// paths.
type Packages struct {
	files *token.FileSet
	from  types.Importer
}

// Load builds the packages that match patterns, and all that they import, with go build.
func Load(patterns ...string) (*Packages, error) {
	var stderr bytes.Buffer
	cmd := exec.Command("go", append([]string{"list", "-deps", "-export", "-f", "{{.ImportPath}} {{.Export}}"}, patterns...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%v: %w: %s", cmd, err, &stderr)
	}
	built := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		built[path] = file
	}
	p := &Packages{files: token.NewFileSet()}
	p.from = importer.ForCompiler(p.files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(built[path]) })
	return p, nil
}

// Lines returns the exported names of the package at path, with methods and signatures, a line
// each. Names that files in without declare are left out.
func (p *Packages) Lines(path string, without ...string) ([]string, error) {
	pkg, err := p.from.Import(path)
	if err != nil {
		return nil, err
	}
	l := lister{names: map[*types.TypeName]string{}}
	scope := pkg.Scope()
	for _, name := range scope.Names() {
		if o, ok := scope.Lookup(name).(*types.TypeName); ok && o.Exported() {
			if n, ok := types.Unalias(o.Type()).(*types.Named); ok {
				l.names[n.Obj()] = name
			}
		}
	}
	for _, name := range scope.Names() {
		o := scope.Lookup(name)
		if o.Exported() && !slices.Contains(without, filepath.Base(p.files.Position(o.Pos()).Filename)) {
			l.object(o)
		}
	}
	slices.Sort(l.lines)
	return l.lines, nil
}

// lister writes down the objects of a package. Types of the engine have the names that the package
// gives them: where they are declared does not concern programs.
type lister struct {
	names map[*types.TypeName]string
	lines []string
}

func (l *lister) add(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *lister) object(o types.Object) {
	switch o := o.(type) {
	case *types.Func:
		l.add("func %s%s", o.Name(), l.signature(o.Signature()))
	case *types.Const:
		l.add("const %s %s = %s", o.Name(), l.typ(o.Type()), o.Val().ExactString())
	case *types.Var:
		l.add("var %s %s", o.Name(), l.typ(o.Type()))
	case *types.TypeName:
		l.typeName(o)
	}
}

func (l *lister) typeName(o *types.TypeName) {
	t := types.Unalias(o.Type())
	if p, ok := t.(*types.Pointer); ok {
		l.add("type %s %s", o.Name(), l.typ(t))
		t = p.Elem()
	}
	switch u := t.Underlying().(type) {
	case *types.Struct:
		l.add("type %s struct", o.Name())
		for f := range u.Fields() {
			if f.Exported() {
				l.add("field %s.%s %s", o.Name(), f.Name(), l.typ(f.Type()))
			}
		}
	case *types.Interface:
		l.add("type %s %s", o.Name(), l.typ(u))
	default:
		l.add("type %s %s", o.Name(), l.typ(u))
	}
	values, all := types.NewMethodSet(t), types.NewMethodSet(types.NewPointer(t))
	for m := range all.Methods() {
		star := "*"
		if values.Lookup(m.Obj().Pkg(), m.Obj().Name()) != nil {
			star = ""
		}
		if m.Obj().Exported() {
			l.add("method (%s%s) %s%s", star, o.Name(), m.Obj().Name(), l.signature(m.Type().(*types.Signature)))
		}
	}
}

func (l *lister) signature(s *types.Signature) string {
	out := "(" + l.tuple(s.Params(), s.Variadic()) + ")"
	if params := s.TypeParams(); params.Len() > 0 {
		var list []string
		for p := range params.TypeParams() {
			list = append(list, p.Obj().Name()+" "+l.typ(p.Constraint()))
		}
		out = "[" + strings.Join(list, ", ") + "]" + out
	}
	switch results := l.tuple(s.Results(), false); s.Results().Len() {
	case 0:
		return out
	case 1:
		return out + " " + results
	default:
		return out + " (" + results + ")"
	}
}

func (l *lister) tuple(t *types.Tuple, variadic bool) string {
	var list []string
	for v := range t.Variables() {
		list = append(list, l.typ(v.Type()))
	}
	if variadic {
		list[len(list)-1] = "..." + strings.TrimPrefix(list[len(list)-1], "[]")
	}
	return strings.Join(list, ", ")
}

func (l *lister) typ(t types.Type) string {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		name, ok := l.names[t.Origin().Obj()]
		if !ok {
			name = types.TypeString(t.Origin(), (*types.Package).Name)
			name, _, _ = strings.Cut(name, "[")
		}
		if t.TypeArgs().Len() > 0 {
			var args []string
			for a := range t.TypeArgs().Types() {
				args = append(args, l.typ(a))
			}
			name += "[" + strings.Join(args, ", ") + "]"
		}
		return name
	case *types.Pointer:
		return "*" + l.typ(t.Elem())
	case *types.Slice:
		return "[]" + l.typ(t.Elem())
	case *types.Signature:
		return "func" + l.signature(t)
	default:
		return types.TypeString(t, (*types.Package).Name)
	}
}
