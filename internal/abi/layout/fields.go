//go:build !386 && !arm

package layout

import (
	"fmt"
	"go/ast"
	"reflect"
	"strings"
	"sync/atomic"
	"unicode"
)

// field is a field of a struct for C.
type field struct {
	name          string // "": Go has no name for it
	declaration   string // C's, with %s for the name
	at            uintptr
	above, beside string // comments

	of   reflect.Type // the Go struct that declares it
	inGo reflect.StructField
}

// fields returns the fields of a struct that is at an offset, with those of structs in it that are
// no struct of their own in C.
func (w *writer) fields(t reflect.Type, base uintptr) ([]field, error) {
	written, err := w.src.fields(t)
	if err != nil {
		return nil, err
	}
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous || flat[t.Name()+"."+f.Name] {
			inner, err := w.fields(f.Type, base+f.Offset)
			if err != nil {
				return nil, err
			}
			fields = append(fields, inner...)
			continue
		}
		declaration := w.h.declarations[t.Name()+"."+f.Name]
		if declaration == "" {
			if declaration, err = w.declaration(f.Type, written[i].expr); err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name, err)
			}
		}
		fields = append(fields, field{snake(f.Name), declaration, base + f.Offset, written[i].above, written[i].beside, t, f})
	}
	return fields, nil
}

var (
	atomic32 = reflect.TypeFor[atomic.Uint32]()
	atomic64 = reflect.TypeFor[atomic.Uint64]()
)

var basic = map[reflect.Kind]string{
	reflect.Int8: "int8_t", reflect.Int16: "int16_t", reflect.Int32: "int32_t", reflect.Int64: "int64_t",
	reflect.Uint8: "uint8_t", reflect.Uint16: "uint16_t", reflect.Uint32: "uint32_t", reflect.Uint64: "uint64_t",
	reflect.Uintptr: "uintptr_t", reflect.UnsafePointer: "void *",
}

// declaration returns C's declaration of a field of a type, which the Go source calls expr, with %s
// for the field's name.
func (w *writer) declaration(t reflect.Type, expr ast.Expr) (string, error) {
	dims := ""
	for t.Kind() == reflect.Array {
		var length ast.Expr
		if a, ok := expr.(*ast.ArrayType); ok {
			length, expr = a.Len, a.Elt
		}
		dims += "[" + w.length(t.Len(), length) + "]"
		if t = t.Elem(); t.Kind() == reflect.Uint8 {
			return "char %s" + dims, nil // memory
		}
	}
	pointer := ""
	if t.Kind() == reflect.Pointer {
		pointer, t = "*", t.Elem()
		if t.Kind() == reflect.Array {
			t = t.Elem() // C's pointer is to the first element
		}
		if t.Kind() == reflect.Uint8 {
			return "char *%s" + dims, nil
		}
	}
	name, err := w.typeName(t)
	if err != nil {
		return "", err
	}
	if !strings.HasSuffix(name, "*") {
		name += " "
	}
	return name + pointer + "%s" + dims, nil
}

func (w *writer) typeName(t reflect.Type) (string, error) {
	for _, s := range w.h.structs {
		if s.t == t {
			return "struct " + s.c, nil
		}
	}
	switch name := basic[t.Kind()]; {
	case t == atomic32:
		return "_Atomic uint32_t", nil
	case t == atomic64:
		return "_Atomic uint64_t", nil
	case name != "":
		return name, nil
	case t.Kind() == reflect.Struct:
		return "", fmt.Errorf("C has no struct for %v: name one in internal/abi/layout/tables.go", t)
	}
	return "", fmt.Errorf("C has no type for %v: C and Go cannot share it", t)
}

// length returns the length of an array, as a constant of the header if the Go source has that one.
func (w *writer) length(n int, expr ast.Expr) string {
	name := ""
	switch x := expr.(type) {
	case *ast.Ident:
		name = x.Name
	case *ast.SelectorExpr:
		name = x.Sel.Name
	}
	for _, e := range w.h.enums {
		for _, c := range e.constants {
			if strings.EqualFold(c.inGo, name) && c.value == int64(n) {
				return c.c
			}
		}
	}
	return fmt.Sprint(n)
}

// snake returns C's name for one of Go's: leave_asked for LeaveAsked, tag_ub for TagUB. It returns
// "" for the blank name.
func snake(name string) string {
	var b strings.Builder
	was := '_'
	for _, r := range strings.TrimPrefix(name, "_") {
		if unicode.IsUpper(r) && unicode.IsLower(was) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
		was = r
	}
	return b.String()
}
