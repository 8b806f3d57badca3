package mpi_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

var updateAPI = flag.Bool("update", false, "write testdata/api.txt")

const apiFile = "testdata/api.txt"

// TestAPI holds the exported names of this package, with their methods and signatures, against
// testdata/api.txt: programs are compiled against them. A name that is lost or has another form
// breaks programs. One that is new is written there by go test -run TestAPI -update ./core/mpi.
func TestAPI(t *testing.T) {
	got := exported(load(t))
	if *updateAPI {
		if err := os.WriteFile(apiFile, []byte(strings.Join(got, "\n")+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(apiFile)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(file)), "\n")
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("lost: %s", line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("new, see -update: %s", line)
		}
	}
}

// load gives this package as its importers see it.
func load(t *testing.T) *types.Package {
	var stderr bytes.Buffer
	cmd := exec.Command("go", "list", "-deps", "-export", "-f", "{{.ImportPath}} {{.Export}}", ".")
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, &stderr)
	}
	files, path := map[string]string{}, ""
	for line := range strings.Lines(string(out)) { // the package itself is the last one
		var file string
		path, file, _ = strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
	}
	read := func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }
	p, err := importer.ForCompiler(token.NewFileSet(), "gc", read).Import(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// exported lists what programs can name of p, a line each.
func exported(p *types.Package) []string {
	l := lister{names: map[*types.TypeName]string{}}
	for _, name := range p.Scope().Names() {
		if o, ok := p.Scope().Lookup(name).(*types.TypeName); ok && o.Exported() {
			if n, ok := types.Unalias(o.Type()).(*types.Named); ok {
				l.names[n.Obj()] = name
			}
		}
	}
	for _, name := range p.Scope().Names() {
		if o := p.Scope().Lookup(name); o.Exported() {
			l.object(o)
		}
	}
	slices.Sort(l.lines)
	return l.lines
}

// lister writes down the objects of a package. Types of the engine go by the names that the package
// gives them: where they are declared is no program's business.
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
