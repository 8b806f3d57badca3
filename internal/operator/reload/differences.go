package reload

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/openimpi/impi/config"
)

const none = "none"

type difference struct {
	what     string
	from, to string // empty: not to be shown
}

func (d difference) String() string {
	if d.from == "" && d.to == "" {
		return d.what + ": is another one"
	}
	return d.what + ": " + cmp.Or(d.from, none) + " -> " + cmp.Or(d.to, none)
}

// Settings that are compared elsewhere, as some parts can change, or that are not part of the text
// of the file.
var (
	siteElsewhere = []string{"Name", "Routes", "Transports", "Log"}
	jobElsewhere  = []string{"Sites", "Limits", "File", "Dir", "Complete", "Builtins"}
)

// fieldDifferences lists the differences between two jobs or sites, except in the fields in but.
func fieldDifferences[T config.Job | config.Site](before, after *T, but []string) (list []difference) {
	a, b := reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem()
	for i := range a.NumField() {
		if f := a.Type().Field(i); f.IsExported() && !slices.Contains(but, f.Name) {
			list = append(list, differences(nameOf(f), "", a.Field(i), b.Field(i))...)
		}
	}
	return list
}

var (
	position = reflect.TypeFor[config.Pos]()
	host     = reflect.TypeFor[config.Host]()
	auth     = reflect.TypeFor[config.Auth]()
	report   = reflect.TypeFor[config.Report]()
)

// differences compares two values of one type. of says whose they are.
func differences(what, of string, a, b reflect.Value) (list []difference) {
	t := a.Type()
	switch {
	case t == position || reflect.DeepEqual(a.Interface(), b.Interface()):
		return nil
	case t == auth: // no key may be printed in a log
		return []difference{{what: what + of}}
	case t.Kind() == reflect.Pointer && !a.IsNil() && !b.IsNil():
		return differences(what, of, a.Elem(), b.Elem())
	case t.Kind() == reflect.Struct && strings.HasPrefix(t.PkgPath(), position.PkgPath()):
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && (t != report || f.Name != "Dir") { // which is the file's
				list = append(list, differences(joined(what, nameOf(f)), of, a.Field(i), b.Field(i))...)
			}
		}
		return list
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct && a.Len() == b.Len():
		for i := range a.Len() {
			name := fmt.Sprintf("%s %d", what, i+1)
			inner := joined("", name)
			whose := of
			if t.Elem() == host {
				inner, whose = "", " of host "+a.Index(i).Interface().(config.Host).String()
			}
			list = append(list, differences(inner, whose, a.Index(i), b.Index(i))...)
		}
		return list
	case t.Kind() == reflect.Map: // variables of the environment may be secrets
		return []difference{{what: what + of}}
	}
	return []difference{{what + of, shown(a), shown(b)}}
}

func joined(what, name string) string { return strings.TrimSpace(what + " " + name) }

func nameOf(f reflect.StructField) string {
	if name := strings.TrimPrefix(f.Tag.Get("hcl"), "!"); name != "" {
		return name
	}
	return strings.ToLower(f.Name)
}

func shown(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil(), v.Kind() == reflect.String && v.Len() == 0, invalid(v):
		return none
	case v.Kind() == reflect.Pointer:
		return "other"
	case v.Kind() == reflect.String:
		return fmt.Sprintf("%q", v.String())
	case v.Kind() == reflect.Slice && v.Type().Elem() == host:
		return fmt.Sprintf("%v", v.Interface())
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct && strings.HasPrefix(v.Type().Elem().PkgPath(), position.PkgPath()):
		return fmt.Sprintf("%d of them", v.Len())
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.String:
		return quoted(v.Interface())
	}
	return fmt.Sprint(v.Interface())
}

// invalid reports whether a value has an IsValid method that returns false, as that of a missing
// address does.
func invalid(v reflect.Value) bool {
	x, ok := v.Interface().(interface{ IsValid() bool })
	return ok && !x.IsValid()
}

// quoted returns a list of strings as in a file, or none for nil.
func quoted(list any) string {
	if v := reflect.ValueOf(list); v.IsNil() {
		return none
	}
	return strings.ReplaceAll(fmt.Sprintf("%q", list), `" "`, `", "`)
}
