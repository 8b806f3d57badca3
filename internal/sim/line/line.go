// Package line writes structs as lines of text and reads them: a verb, the values of some fields,
// and key=value for the others.
//
//	message 1 from=0 to=3 comm=w tag=5 kind=int32 len=100
//
// The keys are the names of the exported fields in lower case. The fields of embedded structs are
// treated as fields of the struct. Tags change that: `line:"@"` is a value without a key (the last
// such field may be a list), `line:"-"` leaves the field out, and `line:"name"` or
// `line:"name,any"` gives the key and the word for -1. Elements of lists are separated by commas.
// encoding/json would do, but people read and write these lines.
package line

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

type field struct {
	name, minus string // of the tag; "@": the value has no key
	v           reflect.Value
}

func fields(v reflect.Value) (all []field) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, minus, _ := strings.Cut(f.Tag.Get("line"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case f.Anonymous && name == "":
			all = append(all, fields(v.Field(i))...)
		case name == "":
			all = append(all, field{strings.ToLower(f.Name), minus, v.Field(i)})
		default:
			all = append(all, field{name, minus, v.Field(i)})
		}
	}
	slices.SortStableFunc(all, func(a, b field) int { return cmp.Compare(b.bare(), a.bare()) })
	return all
}

// bare returns 1 for a value without a key, which stands before the others.
func (f field) bare() int {
	if f.name == "@" {
		return 1
	}
	return 0
}

// Write formats a struct as a line. It leaves out fields that have the same value in usual, a
// struct of the same type.
func Write(verb string, v, usual any) string {
	b := strings.Builder{}
	b.WriteString(verb)
	u := fields(reflect.ValueOf(usual))
	for i, f := range fields(reflect.ValueOf(v)) {
		switch {
		case f.name == "@" && f.v.Kind() == reflect.Slice:
			for k := range f.v.Len() {
				b.WriteString(" " + f.text(f.v.Index(k)))
			}
		case f.name == "@":
			b.WriteString(" " + f.text(f.v))
		case !reflect.DeepEqual(f.v.Interface(), u[i].v.Interface()):
			b.WriteString(" " + f.name + "=" + f.text(f.v))
		}
	}
	return b.String()
}

var duration = reflect.TypeFor[time.Duration]()

func (f field) text(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Slice:
		words := make([]string, v.Len())
		for i := range words {
			words[i] = f.text(v.Index(i))
		}
		return strings.Join(words, ",")
	case v.Kind() == reflect.Bool:
		return map[bool]string{true: "yes", false: "no"}[v.Bool()]
	case f.minus != "" && v.Int() == -1:
		return f.minus
	case v.Type() == duration || reflect.PointerTo(v.Type()).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return fmt.Sprint(v)
	case v.CanInt() || v.CanUint():
		return fmt.Sprintf("%d", v.Interface()) // even if it has a String method
	}
	return fmt.Sprint(v)
}

// Read parses the words of a line, without its verb, into the struct that into points to.
func Read(words []string, into any) error {
	var seen []string
	all := fields(reflect.ValueOf(into).Elem())
	for _, f := range all {
		if f.name != "@" {
			continue
		}
		if len(words) == 0 {
			return errors.New("there is something missing")
		}
		n := 1
		if f.v.Kind() == reflect.Slice {
			n = len(words)
		}
		if err := f.set(f.v, strings.Join(words[:n], ",")); err != nil {
			return err
		}
		words = words[n:]
	}
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		i := slices.IndexFunc(all, func(f field) bool { return f.name == key && key != "@" })
		if !ok || i < 0 || slices.Contains(seen, key) {
			return fmt.Errorf("%q: no such key=value here, or twice", word)
		}
		seen = append(seen, key)
		if err := all[i].set(all[i].v, value); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

func (f field) set(v reflect.Value, word string) (err error) {
	var n int64
	var u uint64
	var x float64
	switch t, ok := v.Addr().Interface().(encoding.TextUnmarshaler); {
	case ok:
		return t.UnmarshalText([]byte(word))
	case v.Kind() == reflect.Slice:
		v.SetZero()
		for _, w := range strings.FieldsFunc(word, func(r rune) bool { return r == ',' }) {
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
			if err := f.set(v.Index(v.Len()-1), w); err != nil {
				return err
			}
		}
	case v.Kind() == reflect.String:
		v.SetString(word)
	case v.Kind() == reflect.Bool:
		v.SetBool(word == "yes")
		if word != "yes" && word != "no" {
			err = errors.New("not yes or no")
		}
	case v.Type() == duration:
		var d time.Duration
		d, err = time.ParseDuration(word)
		v.SetInt(int64(d))
		if d < 0 {
			err = errors.New("negative")
		}
	case f.minus != "" && word == f.minus:
		v.SetInt(-1)
	case v.CanInt():
		n, err = strconv.ParseInt(word, 0, v.Type().Bits())
		v.SetInt(n)
	case v.CanUint():
		u, err = strconv.ParseUint(word, 0, v.Type().Bits())
		v.SetUint(u)
	case v.CanFloat():
		x, err = strconv.ParseFloat(word, 64)
		v.SetFloat(x)
	}
	if err != nil {
		return fmt.Errorf("%q: %w", word, err)
	}
	return nil
}
