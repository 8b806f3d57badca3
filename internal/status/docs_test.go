package status

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// TestReportIsDocumented: docs/impi-node.md has each field of what -json prints here, which are those
// of impi-node links and some more.
func TestReportIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/impi-node.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "\n### The report\n")
	if !found {
		t.Fatal("the page has no section about the report")
	}
	text, _, _ = strings.Cut(text, "\n## ")
	_, watched, _ := strings.Cut(string(page), "\nWith `-watch` a job that is gone")
	watched, _, _ = strings.Cut(watched, "\n`impi-node top`")
	text += watched
	told := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z0-9_.\\[\\]]+)`").FindAllStringSubmatch(text, -1) {
		for name := range strings.SplitSeq(m[1], ".") {
			told[strings.TrimSuffix(name, "[]")] = true
		}
	}
	fields(reflect.TypeFor[Report](), map[reflect.Type]bool{}, func(of reflect.Type, name string) {
		if !told[name] {
			t.Errorf("it does not tell of %q, a field of %v", name, of)
		}
	})
}

// fields calls visit with the JSON names of the fields of a type and of the types of its fields.
func fields(t reflect.Type, seen map[reflect.Type]bool, visit func(of reflect.Type, name string)) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] || t.PkgPath() == "time" {
		return
	}
	seen[t] = true
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			visit(t, name)
		}
		fields(f.Type, seen, visit)
	}
}
