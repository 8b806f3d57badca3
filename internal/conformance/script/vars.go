package script

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"strconv"
	"strings"
)

// Vars are the values of names. Numbers are as in Go.
type Vars map[string]string

// name matches what is replaced in a step.
var name = regexp.MustCompile(`\$(\w+)|\$\{([^}]*)\}`)

// Expand replaces the variables and the expressions in a text. It panics if a variable does not
// exist: then one of our scripts is wrong.
func (v Vars) Expand(text string) string {
	return name.ReplaceAllStringFunc(text, func(found string) string {
		m := name.FindStringSubmatch(found)
		if m[1] == "" {
			return strconv.FormatUint(v.number(m[2]), 10)
		}
		value, has := v[m[1]]
		if !has {
			panic("script: there is no variable " + m[1])
		}
		return value
	})
}

// number is the value of an expression, modulo 2^64.
func (v Vars) number(text string) uint64 {
	e, err := parser.ParseExpr(text)
	if err != nil {
		panic("script: " + err.Error())
	}
	return v.eval(e)
}

func (v Vars) eval(e ast.Expr) uint64 {
	switch e := e.(type) {
	case *ast.BasicLit:
		return Number(e.Value)
	case *ast.Ident:
		return Number(v.Expand("$" + e.Name))
	case *ast.SelectorExpr: // a field of a named object
		return Number(v[fmt.Sprintf("%s.%s", e.X, e.Sel.Name)])
	case *ast.BinaryExpr:
		x, y := v.eval(e.X), v.eval(e.Y)
		switch e.Op {
		case token.ADD:
			return x + y
		case token.SUB:
			return x - y
		case token.MUL:
			return x * y
		case token.REM:
			return x % y
		case token.QUO:
			return x / y
		case token.SHL:
			return x << y
		default: // panics below
		}
	}
	panic(fmt.Sprintf("script: no expression: %#v", e))
}

// Number parses a number, which may be negative or in base 16. It panics if text is no number.
func Number(text string) uint64 {
	if n, err := strconv.ParseUint(text, 0, 64); err == nil {
		return n
	}
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		panic(fmt.Sprintf("script: %q is no number", text))
	}
	return uint64(n)
}

// Run plays steps in their order: do is called with each step, with all its variables replaced.
func Run(steps []Step, v Vars, do func(s Step)) {
	for _, s := range steps {
		if condition, is := strings.CutPrefix(s.Text, "when "); is {
			if a, b, _ := strings.Cut(v.Expand(condition), " = "); a == b {
				Run(s.Body, v, do)
			}
			continue
		}
		over, repeats := strings.CutPrefix(s.Text, "each ")
		if !repeats {
			s.Text = v.Expand(s.Text)
			do(s)
			continue
		}
		names, values, _ := strings.Cut(over, " = ")
		for i, value := range list(v.Expand(values)) {
			v["i"] = strconv.Itoa(i)
			parts := strings.Split(value, ",")
			for n, name := range strings.Split(names, ",") {
				v[name] = parts[n]
			}
			Run(s.Body, v, do)
		}
	}
}

// Call sets a routine's parameters to the values in w, the words of the step that calls it.
func (v Vars) Call(r Routine, w Words) {
	for i, name := range r.Parameters {
		v[name] = w.Word(i)
	}
	maps.Copy(v, w.Named)
	v["rest"] = w.Rest
}

// list returns the values over which "each" goes.
func list(text string) (all []string) {
	for _, word := range strings.Fields(text) {
		from, to, is := strings.Cut(word, "..")
		if !is {
			all = append(all, word)
			continue
		}
		for n := Number(from); n < Number(to); n++ {
			all = append(all, strconv.FormatUint(n, 10))
		}
	}
	return all
}
