package abi

import (
	"cmp"
	_ "embed"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
)

// faceTable has the functions and methods of core/mpi, with their comments:
//
//	== FILE ROOM RECEIVER
//	m Name(params) results [as Name] [-> callee]
//		comment
//
// A file of core/mpi follows. Its functions call those of a room of the engine, put their names
// before errors and tell the error handler; the engine's give errors as they are. The room is a
// package, or an expression whose methods are called. A line of a comment that is only // is an
// empty one.
//
// The letter is the form: m is a method of the receiver, b one over Buffers of what there is over
// slices too, s a function over slices, of elements T, and U where there are two, whose first
// parameter is the receiver. f is a function without receiver, p one about the program's process,
// which the engine's function gets first, and r one about several requests, of which the engine's
// function gives first the communicator whose handler hears of the error.
//
// The function that is called has the same name, that of b with Items behind it. A callee is
// another function, a whole call, a whole call behind "_, " whose first result is dropped, or a
// whole body, which begins with return. Errors have the name behind as, if it is not that of the
// function.
//
//go:embed face.txt
var faceTable string

// A faceType is a type of core/mpi in the engine: its name there, and how a value becomes one of
// it.
type faceType struct{ engine, in string }

var faceTypes = map[string]faceType{
	"Buffer": {"proc.Buffer", "proc.Buffer(%s)"}, "Status": {"proc.Status", "proc.Status(%s)"}, "Request": {"proc.Request", ""},
	"StatusWords": {"proc.StatusWords", "proc.StatusWords(%s)"}, "Target": {"window.Target", "window.Target(%s)"},
	"FileView": {"file.View", "file.View(%s)"}, "Figures": {"proc.Figures", ""}, "Remains": {"meet.Remains", ""},
	"[]Buffer": {"", "inner[proc.Buffer](%s)"}, "[]Request": {"", "inner[proc.Request](%s)"}, "[]Status": {"", "inner[proc.Status](%s)"},
	"Generalized": {"p2p.Generalized", "%s.in()"}, "*Comm": {"*proc.Comm", "%s.in()"}, "*Errhandler": {"*proc.Errhandler", "%s.in()"},
	"*File": {"*file.File", "%s.in()"}, "*Group": {"*proc.Group", "%s.in()"}, "*Info": {"*proc.Info", "%s.in()"},
	"*Message": {"*p2p.Message", "%s.in()"}, "*Proc": {"*proc.Process", "%s.p"}, "*Request": {"*proc.Request", "%s.in()"},
	"*SendBuffer": {"*proc.SendBuffer", "%s.in()"}, "*Status": {"*proc.Status", "%s.in()"}, "*Win": {"*window.Win", "%s.in()"},
}

// faceHandlers are the objects whose handlers hear of errors of their methods, and of functions
// that have one as their first parameter. A request and a message may be gone when there is an
// error. Errors of anything else are told to package proc.
var faceHandlers = map[string]string{
	"*Comm": "%s.in()", "*Group": "%s.in()", "*Win": "%s.in()", "*Proc": "%s.p", "*SendBuffer": "%s.in().Process",
	"*Request": "%s.in().Comm()", "*Message": "%s.in().Comm()",
}

// facePrefixes are put before the names of methods in errors.
var facePrefixes = map[string]string{
	"*Errhandler": "Errhandler.", "*Group": "Group.", "*Info": "Info.", "*SendBuffer": "SendBuffer.", "Status": "Status.", "*Status": "Status.",
}

var faceImports = []string{
	"core/comm", "core/datatype", "plugins/sdk/link", "core/message", "core/mpierr", "core/rma", "internal/engine/calls", "internal/engine/collective", "internal/engine/construct",
	"internal/engine/file", "internal/engine/life", "internal/engine/meet", "internal/engine/object", "internal/engine/p2p",
	"internal/engine/proc", "internal/engine/window",
}

type faceFn struct {
	form     string
	room     string
	me, kind string // name and type of the receiver, or nothing
	decl     *ast.FuncDecl
	sig      string // parameters and results as they are written
	failed   string // name in errors
	callee   string // or nothing
	comment  []string
}

func faceFiles(table string) (names []string, files map[string][]faceFn, err error) {
	files = map[string][]faceFn{}
	var room, me, kind string
	for n, line := range strings.Split(table, "\n") {
		name := ""
		if len(names) > 0 {
			name = names[len(names)-1]
		}
		switch fns := files[name]; {
		case line == "":
		case strings.HasPrefix(line, "== "):
			w := strings.Fields(line)
			if w[1] != name {
				names = append(names, w[1])
			}
			room, me, kind = w[2], "", ""
			if len(w) > 3 {
				me, kind = w[3], w[4]
			}
		case strings.HasPrefix(line, "\t") && len(fns) > 0:
			fns[len(fns)-1].comment = append(fns[len(fns)-1].comment, strings.TrimPrefix(strings.TrimSpace(line), "//"))
		default:
			form, rest, _ := strings.Cut(line, " ")
			sig, callee, _ := strings.Cut(rest, " -> ")
			sig, failed, _ := strings.Cut(sig, " as ")
			file, err := parser.ParseFile(token.NewFileSet(), "", "package mpi\nfunc "+sig, 0)
			if err != nil {
				return nil, nil, fmt.Errorf("face.txt:%d: %w", n+1, err)
			}
			decl := file.Decls[0].(*ast.FuncDecl)
			f := faceFn{form, room, me, kind, decl, strings.TrimPrefix(sig, decl.Name.Name), failed, callee, nil}
			if failed == "" {
				f.failed = decl.Name.Name
			}
			if f.method() && failed == "" {
				f.failed = facePrefixes[kind] + f.failed
			}
			files[name] = append(fns, f)
		}
	}
	return names, files, nil
}

// Face returns the texts of the files of core/mpi that are generated from the table, by their
// names.
func Face() (map[string]string, error) {
	names, files, err := faceFiles(faceTable)
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for _, name := range names {
		var b strings.Builder
		for _, f := range files[name] {
			b.WriteString(f.text())
		}
		if texts["core/mpi/"+name], err = faceFile("face.txt", b.String()); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return texts, nil
}

// faceFile is a file of core/mpi, which follows from a table, with the imports that it needs.
func faceFile(table, body string) (string, error) {
	var b strings.Builder
	b.WriteString("// Code generated by internal/abi/gen from " + table + ". DO NOT EDIT.\n\npackage mpi\n\nimport (\n")
	code := regexp.MustCompile(`(?m)^//.*$`).ReplaceAllString(body, "")
	for _, std := range []string{"io", "unsafe"} {
		if strings.Contains(code, std+".") {
			fmt.Fprintf(&b, "\t%q\n\n", std)
		}
	}
	for _, p := range faceImports {
		if regexp.MustCompile(`\b` + path.Base(p) + `\.`).MatchString(code) {
			fmt.Fprintf(&b, "\t%q\n", "github.com/openimpi/impi/"+p)
		}
	}
	text, err := format.Source([]byte(b.String() + ")\n" + body))
	return string(text), err
}

// method tells whether the function is a method of the receiver.
func (f faceFn) method() bool { return f.form == "m" || f.form == "b" }

func (f faceFn) text() string {
	var b strings.Builder
	for _, line := range f.comment {
		fmt.Fprintf(&b, "\n// %s", line)
	}
	name := f.decl.Name.Name
	switch {
	case f.method():
		fmt.Fprintf(&b, "\nfunc (%s %s) %s%s", f.me, f.kind, name, f.sig)
	case f.form == "s" && strings.Contains(f.sig, "[]U"):
		fmt.Fprintf(&b, "\nfunc %s[T, U Type](%s %s, %s", name, f.me, f.kind, f.sig[1:])
	case f.form == "s":
		fmt.Fprintf(&b, "\nfunc %s[T Type](%s %s, %s", name, f.me, f.kind, f.sig[1:])
	default:
		fmt.Fprintf(&b, "\nfunc %s%s", name, f.sig)
	}
	fmt.Fprintf(&b, " {\n\t%s\n}\n", strings.Join(f.measured(f.body()), "\n\t"))
	return b.String()
}

func (f faceFn) body() []string {
	if strings.HasPrefix(f.callee, "return ") {
		return []string{f.callee}
	}
	call, dropped := strings.CutPrefix(f.call(), "_, ")
	types, fails := f.results()
	if len(types) == 0 && !fails {
		return []string{call}
	}
	before, who := f.handler()
	var results, values, declared []string
	for i, t := range types {
		v := fmt.Sprintf("r%d", i+1)
		results, values = append(results, v), append(values, out(t, v))
		declared = append(declared, fmt.Sprintf("var %s %s", v, inEngine(t)))
	}
	if !fails { // one result
		return []string{"return " + out(types[0], call)}
	}
	switch {
	case dropped:
		results = []string{"_"}
	case f.form == "r":
		results = append([]string{"c"}, results...)
	case f.kind == "*File" && f.method() && strings.Join(results, "") == strings.Join(values, ""):
		return []string{"return " + call}
	case len(types) == 0 && f.form != "p":
		return append(before, fmt.Sprintf("return %s.Failed(%q, %s)", who, f.failed, call))
	}
	given := strings.Join(append(results, "err"), ", ")
	told := "return " + strings.Join(append(values, fmt.Sprintf("%s.Failed(%q, err)", who, f.failed)), ", ")
	if f.kind == "*File" && f.method() {
		told = "return " + strings.Join(append(values, "err"), ", ")
	}
	if f.form != "p" {
		return append(before, given+" := "+call, told)
	}
	return slices.Concat([]string{"p, err := proc.Current()"}, declared, []string{"if err == nil {", "\t" + given + " = " + call, "}", told})
}

// handler returns whose Failed is told of an error, and the statements before the call that find
// it.
func (f faceFn) handler() (before []string, who string) {
	name, kind := f.me, f.kind
	if params := f.decl.Type.Params.List; f.form == "f" || f.form == "p" {
		name, kind = "", ""
		if len(params) > 0 {
			name, kind = params[0].Names[0].Name, typeText(params[0].Type)
		}
	}
	switch form := faceHandlers[kind]; {
	case f.form == "r":
		return nil, "c"
	case kind == "*Request", kind == "*Message":
		return []string{"c := " + fmt.Sprintf(form, name)}, "c"
	case form != "":
		return nil, fmt.Sprintf(form, name)
	}
	return nil, "proc"
}

func (f faceFn) call() string {
	callee, args := f.callee, []string(nil)
	switch {
	case callee != "" && f.kind == "*File" && f.method():
		return f.fileCall(callee)
	case strings.HasSuffix(callee, ")"):
		return callee
	}
	name := f.decl.Name.Name
	if f.form == "b" {
		name += "Items"
	}
	callee = cmp.Or(callee, f.room+"."+name)
	switch {
	case f.form == "p":
		args = append(args, "p")
	case (f.method() || f.form == "s") && !strings.Contains(callee, ".in().") && !strings.Contains(callee, ").") && !strings.HasPrefix(callee, f.me+"."):
		args = append(args, fmt.Sprintf(faceTypes[f.kind].in, f.me))
	}
	for _, p := range f.decl.Type.Params.List {
		for _, id := range p.Names {
			arg := id.Name
			if t := faceTypes[typeText(p.Type)]; t.in != "" {
				arg = fmt.Sprintf(t.in, arg)
			}
			args = append(args, arg)
		}
	}
	call := fmt.Sprintf("%s(%s)", callee, strings.Join(args, ", "))
	if f.kind == "*File" && f.method() {
		return f.fileCall(call)
	}
	return call
}

// fileCall returns the code that does something with a file that can be used. Package file puts the
// name before an error, which no handler is told.
func (f faceFn) fileCall(what string) string {
	do, result := "Do", "error"
	if types, _ := f.results(); len(types) > 0 {
		do, result = "Call", fmt.Sprintf("(%s, error)", inEngine(types[0]))
	}
	return fmt.Sprintf("file.%s(%q, f.in(), func(f *file.File) %s { return %s })", do, f.failed, result, what)
}

// results are the types of the results but an error.
func (f faceFn) results() (types []string, fails bool) {
	if f.decl.Type.Results == nil {
		return nil, false
	}
	for _, r := range f.decl.Type.Results.List {
		for range max(len(r.Names), 1) {
			types = append(types, typeText(r.Type))
		}
	}
	if n := len(types) - 1; types[n] == "error" {
		return types[:n], true
	}
	return types, false
}

// inEngine is a type of core/mpi as the engine calls it.
func inEngine(t string) string { return cmp.Or(faceTypes[t].engine, t) }

// out is a value of the engine's as one of a type of core/mpi.
func out(t, value string) string {
	switch {
	case faceTypes[t].engine == "":
		return value
	case t[0] == '*':
		return fmt.Sprintf("(%s)(%s)", t, value)
	}
	return fmt.Sprintf("%s(%s)", t, value)
}

func typeText(t ast.Expr) string {
	switch x := t.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.StarExpr:
		return "*" + typeText(x.X)
	case *ast.ArrayType:
		return "[]" + typeText(x.Elt)
	case *ast.SelectorExpr:
		return typeText(x.X) + "." + x.Sel.Name
	}
	return ""
}
