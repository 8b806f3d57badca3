package reload

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
)

// everything has a block of each kind, for TestEveryFieldIsCompared. Pointers and lists that it
// leaves empty are filled there.
const everything = base + `
transport "tcp" { config { nodelay = true } }
route "beta" { prefer = ["unix", "tcp"] }
`

// unconcerned are the fields that may differ and nothing is said, each with the reason.
var unconcerned = map[string]string{
	"File":                     "it is the same file",
	"Dir":                      "that of File",
	"Complete":                 "follows from the sites",
	"Builtins":                 "those of the program",
	"Report.Dir":               "that of File",
	"Sites.Transports.Builtin": "follows from Name",
	"Sites.Transports.Known":   "follows from Name",
	"Sites.Transports.Path":    "where Plugin is found",
	"Sites.Transports.Dir":     "that of File",
	"Sites.Transports.Version": "is that of the binary which has SHA256",
	"Sites.Transports.Install": "is only for messages",
	"Sites.Routes.NativeUsual": "says where Native is from",
	"Sites.Routes.Closed":      "follows from the transports and require_tls",
}

// TestEveryFieldIsCompared changes each field of a job in turn: a reload takes it, or says that it
// needs a restart. A new field of package config is found here.
func TestEveryFieldIsCompared(t *testing.T) {
	r, _ := running(t, everything)
	read := func() *config.Job {
		job, found := loaded(t, r.Source.Job.Dir, everything)
		if job == nil {
			t.Fatal(found)
		}
		fill(reflect.ValueOf(job).Elem())
		return job
	}
	start := read()
	r.Source.Job, r.Source.Site = start, start.Sites[0]
	site := start.Sites[0]
	r.Routes.Job, r.Routes.Site = start, &site
	r = New(r.Settings)
	if p := r.plan(read(), read().Sites[0]); len(p.changes)+len(p.restart) > 0 {
		t.Fatalf("nothing has changed: %q %q", p.changes, p.restart)
	}
	seen := make(map[string]bool)
	for _, path := range leaves(reflect.TypeFor[config.Job](), nil) {
		name := strings.Join(path, ".")
		job := read()
		alter(at(reflect.ValueOf(job).Elem(), path))
		site := job.Sites[0]
		p := r.plan(job, site)
		said := slices.Concat(p.changes, p.restart)
		switch why, ok := unconcerned[name]; {
		case ok:
			seen[name] = true
			if len(said) > 0 {
				t.Errorf("%s: %q, though it does not matter: %s", name, said, why)
			}
		case len(said) == 0:
			t.Errorf("%s: a file with another value is taken for the same", name)
		}
	}
	for name := range unconcerned {
		if !seen[name] {
			t.Errorf("there is no field %s", name)
		}
	}
}

// leaves are the paths to the fields that have no fields of package config, lists as their first
// element.
func leaves(t reflect.Type, path []string) (list [][]string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct && t.Elem().PkgPath() == position.PkgPath() {
		t = t.Elem()
	}
	if t == position {
		return nil
	}
	if t.Kind() != reflect.Struct || t.PkgPath() != position.PkgPath() || t == reflect.TypeFor[config.Builtin]() {
		return [][]string{path}
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() {
			list = append(list, leaves(f.Type, append(slices.Clone(path), f.Name))...)
		}
	}
	return list
}

// at is the field at a path.
func at(v reflect.Value, path []string) reflect.Value {
	for _, name := range path {
		v = first(v).FieldByName(name)
	}
	return v
}

// first is what a pointer points to, or the first element of a list.
func first(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		return first(v.Elem())
	case reflect.Slice:
		return first(v.Index(0))
	}
	return v
}

// fill gives all pointers and lists of structures of package config something.
func fill(v reflect.Value) {
	switch t := v.Type(); {
	case t.Kind() == reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(t.Elem()))
		}
		fill(v.Elem())
	case t.Kind() == reflect.Interface && v.IsNil():
		v.Set(reflect.ValueOf("something"))
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct && t.Elem().PkgPath() == position.PkgPath():
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(t, 1, 1))
		}
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case t.Kind() == reflect.Struct && t.PkgPath() == position.PkgPath():
		for i := range t.NumField() {
			if t.Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	}
}

// alter gives a field another value.
func alter(v reflect.Value) {
	switch v.Interface().(type) {
	case netip.Addr:
		v.Set(reflect.ValueOf(netip.MustParseAddr("192.0.2.77")))
		return
	case netip.AddrPort:
		v.Set(reflect.ValueOf(netip.MustParseAddrPort("192.0.2.77:77")))
		return
	case netip.Prefix:
		v.Set(reflect.ValueOf(netip.MustParsePrefix("192.0.2.0/24")))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(v.Uint() + 1)
	case reflect.Float64:
		v.SetFloat(v.Float() + 1)
	case reflect.Interface:
		v.Set(reflect.ValueOf("another"))
	case reflect.Slice:
		more := reflect.New(v.Type().Elem()).Elem()
		alter(more)
		v.Set(reflect.Append(v, more))
	case reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		alter(key)
		v.SetMapIndex(key, value)
	case reflect.Struct:
		alter(v.Field(0))
	default:
		panic("alter cannot change a " + v.Type().String())
	}
}
