package mutant

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strings"
)

// Switch is the environment variable that turns a fault on, by its number in the
// list, from 1.
const Switch = "IMPI_MUTANT"

// InsertMutants puts all faults of a list into the files that read gives, each with a
// switch, so that one build has them all. It gives the contents of the files that
// are other ones or new.
//
// The function that a fault changes is there twice then: as it was, but for a
// beginning that calls the other one if that fault is on, and as it is with the
// fault. Faults that span functions, or are in none, cannot be woven.
func InsertMutants(list []Mutant, read func(file string) ([]byte, error)) (files map[string][]byte, err error) {
	woven := map[string]*weaver{}
	for i := range list {
		m := &list[i]
		w := woven[m.File]
		if w == nil {
			if w, err = newWeaver(m.File, read); err != nil {
				return nil, err
			}
			woven[m.File] = w
		}
		if err := w.add(m, i+1); err != nil {
			return nil, err
		}
	}
	files = map[string][]byte{}
	for name, w := range woven {
		files[name] = w.text()
		files[path.Join(path.Dir(name), "mutant_switch.go")] = fmt.Appendf(nil, switchFile, w.syntax.Name.Name, Switch)
	}
	return files, nil
}

const switchFile = `package %s

import (
	"os"
	"strconv"
)

// mutantSwitch is the fault that is on; 0: none.
var mutantSwitch, _ = strconv.Atoi(os.Getenv(%q))
`

type weaver struct {
	source []byte
	syntax *ast.File
	calls  map[int]string // beginnings of functions, by where their bodies begin
	copies bytes.Buffer   // functions with faults
}

func newWeaver(name string, read func(string) ([]byte, error)) (*weaver, error) {
	source, err := read(name)
	if err != nil {
		return nil, err
	}
	syntax, err := parse(name, source)
	return &weaver{source: source, syntax: syntax, calls: map[int]string{}}, err
}

// parse returns a syntax tree in which positions are offsets, plus one.
func parse(name string, source []byte) (*ast.File, error) {
	return parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
}

func (w *weaver) add(m *Mutant, number int) error {
	mutated, err := m.Apply(w.source)
	if err != nil {
		return err
	}
	syntax, err := parse(m.File, mutated)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrList, m.Name, err)
	}
	i, err := w.changed(mutated, syntax)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrList, m.Name, err)
	}
	was, is := w.syntax.Decls[i].(*ast.FuncDecl), syntax.Decls[i].(*ast.FuncDecl)
	name := fmt.Sprintf("%sMutant%d", was.Name.Name, number)
	call, err := callOf(was, name)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrList, m.Name, err)
	}
	w.calls[int(was.Body.Lbrace)] += fmt.Sprintf(" if mutantSwitch == %d { %s };", number, call)
	// The compiler names the fault in its errors.
	fmt.Fprintf(&w.copies, "\n//line %s:1\n%s%s%s\n", m.Name,
		mutated[is.Pos()-1:is.Name.Pos()-1], name, mutated[is.Name.End()-1:is.End()-1])
	return nil
}

// changed finds the one function that differs in the mutated file.
func (w *weaver) changed(mutated []byte, syntax *ast.File) (at int, err error) {
	if len(syntax.Decls) != len(w.syntax.Decls) {
		return 0, errors.New("it changes more than one function")
	}
	at = -1
	for i, d := range syntax.Decls {
		was := w.syntax.Decls[i]
		if bytes.Equal(mutated[d.Pos()-1:d.End()-1], w.source[was.Pos()-1:was.End()-1]) {
			continue
		}
		f, isFunc := d.(*ast.FuncDecl)
		g, wasFunc := was.(*ast.FuncDecl)
		if at >= 0 || !isFunc || !wasFunc || f.Name.Name != g.Name.Name {
			return 0, errors.New("it changes something else than one function")
		}
		at = i
	}
	if at < 0 {
		return 0, errors.New("it changes no function")
	}
	return at, nil
}

// callOf is the statement that calls another function, or method, with the parameters of f.
func callOf(f *ast.FuncDecl, name string) (string, error) {
	var args []string
	for _, p := range f.Type.Params.List {
		for _, n := range p.Names {
			arg := n.Name
			if _, variadic := p.Type.(*ast.Ellipsis); variadic {
				arg += "..."
			}
			args = append(args, arg)
		}
		if len(p.Names) == 0 {
			args = append(args, "_")
		}
	}
	if f.Recv != nil {
		if names := f.Recv.List[0].Names; len(names) > 0 {
			name = names[0].Name + "." + name
		} else {
			name = "_." + name
		}
	}
	call := name + "(" + strings.Join(args, ", ") + ")"
	if strings.HasPrefix(call, "_.") || strings.Contains(call, "(_") || strings.Contains(call, " _") {
		return "", fmt.Errorf("%s has parameters without names", f.Name.Name)
	}
	if f.Type.Results != nil {
		return "return " + call, nil
	}
	return call + "; return", nil
}

func (w *weaver) text() []byte {
	var b bytes.Buffer
	for i, c := range w.source {
		b.WriteByte(c)
		b.WriteString(w.calls[i+1])
	}
	b.Write(w.copies.Bytes())
	return b.Bytes()
}
