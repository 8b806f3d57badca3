package config

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// block holds the values of one block of the file: those that were written and
// that are right by themselves.
type block struct {
	spec   *blockSpec
	label  string
	pos    Pos // of the header
	values map[string]value
	blocks []*block
}

// value is one attribute. A bad one was reported already.
type value struct {
	v        any
	bad      bool
	name     string // the host name of an address
	pos      Pos    // of the expression
	elements []Pos  // of the expressions of a literal list
}

// has reports whether the attribute was written, even if it was bad.
func (b *block) has(name string) bool {
	if b == nil {
		return false
	}
	_, ok := b.values[name]
	return ok
}

// at returns the position of the attribute, or of the block if it does not have the attribute.
func (b *block) at(name string) Pos {
	if v, ok := b.values[name]; ok {
		return v.pos
	}
	return b.pos
}

func (b *block) all(name string) []*block {
	var found []*block
	if b == nil {
		return nil
	}
	for _, in := range b.blocks {
		if in.spec.name == name {
			found = append(found, in)
		}
	}
	return found
}

// only returns the block in b that is called name, or nil.
func (b *block) only(name string) *block {
	if all := b.all(name); len(all) > 0 {
		return all[0]
	}
	return nil
}

// get returns an attribute of b; ok is false if it was not written or is bad. b
// may be nil.
func get[T any](b *block, name string) (v T, ok bool) {
	if b == nil {
		return v, false
	}
	v, ok = b.values[name].v.(T)
	return v, ok
}

// nameIn returns the host name that was written as an attribute's value; empty if it was an
// address.
func nameIn(name string, blocks ...*block) string {
	for _, b := range blocks {
		if b.has(name) && !b.values[name].bad {
			return b.values[name].name
		}
	}
	return ""
}

// pick returns the attribute of the first block that has it, or otherwise.
func pick[T any](otherwise T, name string, blocks ...*block) T {
	for _, b := range blocks {
		if v, ok := get[T](b, name); ok {
			return v
		}
	}
	return otherwise
}

// fill sets the fields of a struct that have a tag hcl to the attribute of that name in the first
// block that has it; a tag that begins with ! wants the opposite. A field whose attribute no block
// has stays as it is.
func fill(to any, blocks ...*block) {
	v := reflect.ValueOf(to).Elem()
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag.Get("hcl")
		name, opposite := strings.CutPrefix(tag, "!")
		x := pick[any](nil, name, blocks...)
		if tag == "" || x == nil {
			continue
		}
		if opposite {
			x = !x.(bool)
		}
		v.Field(i).Set(reflect.ValueOf(x).Convert(v.Field(i).Type()))
	}
}

type decoder struct {
	*faults
	src       *source
	env       map[string]cty.Value
	addresses map[string]netip.Addr // of host names
}

func (d *decoder) body(b *block, body *hclsyntax.Body) {
	b.values = map[string]value{}
	for _, a := range attributes(body) {
		spec, known := b.spec.attr(a.Name)
		switch {
		case b.spec.open:
			b.values[a.Name] = d.setting(a)
		case !known:
			d.unknown(d.pos(a.NameRange), b.spec, a.Name, "attribute")
			d.guess(b, a, body)
		default:
			b.values[a.Name] = d.attribute(a, spec)
		}
	}
	seen := map[string]Pos{}
	for _, in := range body.Blocks {
		d.block(b, in, seen)
	}
	for _, a := range b.spec.attrs {
		if a.required && !b.has(a.name) {
			d.fault(b.pos, b.title()+" has no "+a.name, "add "+a.name+" = "+a.kind.example)
		}
	}
}

// guess sets the attribute that was probably meant by a misspelt name, which was reported, so that
// the attribute is not reported as missing too. Faults of its value are not reported, since the
// guess may be wrong.
func (d *decoder) guess(b *block, a *hclsyntax.Attribute, body *hclsyntax.Body) {
	spec, known := b.spec.attr(b.spec.nearest(a.Name, "attribute"))
	if _, written := body.Attributes[spec.name]; !known || written {
		return
	}
	silent := *d
	silent.faults = &faults{file: d.file, lines: d.lines}
	b.values[spec.name] = silent.attribute(a, spec)
}

// attributes returns the attributes of body in the order of the file.
func attributes(body *hclsyntax.Body) []*hclsyntax.Attribute {
	return slices.SortedFunc(maps.Values(body.Attributes), func(a, b *hclsyntax.Attribute) int {
		return a.NameRange.Start.Byte - b.NameRange.Start.Byte
	})
}

func (d *decoder) block(parent *block, in *hclsyntax.Block, seen map[string]Pos) {
	pos := d.pos(in.DefRange())
	spec := parent.spec.block(in.Type)
	if spec == nil {
		if parent.spec.open {
			d.fault(pos, "a transport's config has attributes only", "write "+in.Type+" = ...")
			return
		}
		d.unknown(d.pos(in.TypeRange), parent.spec, in.Type, "block")
		if spec = parent.spec.block(parent.spec.nearest(in.Type, "block")); spec == nil {
			return
		}
	}
	b := &block{spec: spec, pos: pos}
	if d.labels(b, in) {
		d.once(b, seen)
		parent.blocks = append(parent.blocks, b)
	}
	d.body(b, in.Body)
}

// labels sets b's label and reports whether it is as the schema wants it.
func (d *decoder) labels(b *block, in *hclsyntax.Block) bool {
	name := b.spec.name
	switch {
	case b.spec.label == "" && len(in.Labels) > 0:
		d.fault(d.pos(in.LabelRanges[0]), "a "+name+" block has no label", "write "+name+" { ... }")
		return false
	case b.spec.label != "" && len(in.Labels) != 1:
		d.fault(b.pos, "a "+name+" block has one label: "+b.spec.label,
			"write "+name+" "+quote(b.spec.example)+" { ... }")
		return false
	case b.spec.label != "":
		var ok bool
		b.label, ok = d.label(in)
		return ok
	}
	return true
}

func (d *decoder) label(in *hclsyntax.Block) (label string, ok bool) {
	label, at := in.Labels[0], in.LabelRanges[0]
	from := ""
	if d.src.templated(at) {
		expr, diags := hclsyntax.ParseExpression(d.src.written(at), d.file, at.Start)
		for _, diag := range diags {
			d.foreign(diag, d.pos(at))
		}
		if diags.HasErrors() {
			return "", false
		}
		v, ok := d.value(expr)
		if !ok {
			return "", false
		}
		if v, err := convert.Convert(v, cty.String); err == nil && v.IsKnown() && !v.IsNull() {
			label = v.AsString()
		}
		from = d.from(expr)
	}
	if !validLabel(label) {
		d.fault(d.pos(at), quote(label)+" is not a name"+from,
			"write up to 64 letters, digits, dots, dashes and underscores")
		return "", false
	}
	return label, true
}

// validLabel accepts names of sites, transports and mechanisms, and "*".
func validLabel(s string) bool {
	if s == "*" {
		return true
	}
	outside := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
	}
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, outside)
}

// once reports a block that may occur only once and occurs again.
func (d *decoder) once(b *block, seen map[string]Pos) {
	if b.spec.repeated && b.spec.label == "" {
		return
	}
	title := b.title()
	if first, again := seen[title]; again {
		d.fault(b.pos, title+" is there twice", "merge it with the one in line "+itoa(first.Line)+", or rename one")
		return
	}
	seen[title] = b.pos
}

func (b *block) title() string {
	switch {
	case b.spec.name == "":
		return "the file"
	case b.spec.label == "":
		return b.spec.name
	}
	return b.spec.name + " " + quote(b.label)
}

func (d *decoder) unknown(pos Pos, where *blockSpec, name, what string) {
	place := "in " + article(where.name) + " block"
	if where.name == "" {
		place = "at the top of the file"
	}
	near := where.nearest(name, what)
	remedy := suggest(near, where.names())
	if homes := home(name); near == "" && len(homes) > 0 {
		for i, h := range homes {
			if h == "" {
				homes[i] = "the top of the file"
			}
		}
		remedy = "it belongs in " + strings.Join(homes, " or ")
	}
	d.fault(pos, "there is no "+what+" "+quote(name)+" "+place, remedy)
}

func (d *decoder) attribute(a *hclsyntax.Attribute, spec attrSpec) value {
	v, out, ok := d.evaluate(a)
	if !ok {
		return out
	}
	parsed, bad := mismatchIfNull(d.typed(v, a.Expr, spec.kind), spec.kind.parse)
	if bad == nil {
		out.v, out.bad = parsed, false
		if p, ok := parsed.(place); ok {
			out.v, out.name = p.at(d.addresses), p.name
		}
		return out
	}
	pos, problem, remedy := out.pos, bad.problem, bad.remedy
	if bad.element >= 0 && bad.element < len(out.elements) {
		pos = out.elements[bad.element]
	}
	if problem == "" {
		problem = describe(v) + " is not " + spec.kind.want
	}
	if remedy == "" {
		remedy = "write it like " + spec.name + " = " + spec.kind.example
	}
	d.fault(pos, spec.name+": "+problem+d.from(a.Expr), remedy)
	return out
}

// typed returns a value of an expression as a number or truth value if that is wanted and the
// expression has environment variables, which are strings. A string that is neither stays.
func (d *decoder) typed(v cty.Value, expr hclsyntax.Expression, k kind) cty.Value {
	if k.typ == cty.NilType || len(expr.Variables()) == 0 || v.Type() != cty.String || !v.IsKnown() || v.IsNull() {
		return v
	}
	if typed, err := convert.Convert(cty.StringVal(strings.TrimSpace(v.AsString())), k.typ); err == nil {
		return typed
	}
	return v
}

const maxVariable = 80 // bytes of an environment variable that a fault shows

// from says what the environment variables of an expression are, for the end of a fault.
func (d *decoder) from(expr hclsyntax.Expression) string {
	var said []string
	for _, t := range expr.Variables() {
		step, isAttr := second(t).(hcl.TraverseAttr)
		v, set := d.env[step.Name]
		if !isAttr || !set {
			continue
		}
		text := quote(v.AsString())
		if len(text) > maxVariable {
			text = text[:maxVariable] + "..."
		}
		if one := step.Name + " is " + text; !slices.Contains(said, one) {
			said = append(said, one)
		}
	}
	if len(said) == 0 {
		return ""
	}
	return " (the environment variable " + strings.Join(said, ", ") + ")"
}

func mismatchIfNull(v cty.Value, parse func(cty.Value) (any, *wrong)) (any, *wrong) {
	if v.IsNull() || !v.IsWhollyKnown() {
		return nil, mismatch
	}
	return parse(v)
}

func (d *decoder) setting(a *hclsyntax.Attribute) value {
	v, out, ok := d.evaluate(a)
	if !ok {
		return out
	}
	parsed, bad := mismatchIfNull(v, plainValue)
	if bad != nil {
		d.fault(out.pos, a.Name+": "+describe(v)+" cannot be a setting",
			"write a string, a number, true, false or a list of strings")
		return out
	}
	out.v, out.bad = parsed, false
	return out
}

func plainValue(v cty.Value) (any, *wrong) {
	switch v.Type() {
	case cty.String:
		return v.AsString(), nil
	case cty.Bool:
		return v.True(), nil
	case cty.Number:
		f, _ := v.AsBigFloat().Float64()
		return f, nil
	}
	return stringList(v)
}

// evaluate computes an attribute's expression. The result is marked bad until its kind has accepted
// it.
func (d *decoder) evaluate(a *hclsyntax.Attribute) (cty.Value, value, bool) {
	out := value{bad: true, pos: d.pos(a.Expr.Range())}
	if list, ok := a.Expr.(*hclsyntax.TupleConsExpr); ok {
		for _, e := range list.Exprs {
			out.elements = append(out.elements, d.pos(e.Range()))
		}
	}
	v, ok := d.value(a.Expr)
	return v, out, ok
}

func (d *decoder) value(expr hclsyntax.Expression) (v cty.Value, ok bool) {
	if !d.names(expr) {
		return cty.NilVal, false
	}
	v, diags := expr.Value(&hcl.EvalContext{Variables: map[string]cty.Value{"env": cty.ObjectVal(d.env)}})
	for _, diag := range diags {
		d.foreign(diag, d.pos(expr.Range()))
	}
	return v, !diags.HasErrors()
}

// names checks the variables of an expression before it is evaluated, because
// most of them are strings whose quotes were forgotten.
func (d *decoder) names(expr hclsyntax.Expression) bool {
	ok := true
	for _, t := range expr.Variables() {
		pos := d.pos(t.SourceRange())
		if t.RootName() != "env" {
			word := string(d.src.written(t.SourceRange()))
			d.fault(pos, "nothing is called "+word, "write "+quote(word)+" for a string, or env.NAME for an environment variable")
			ok = false
			continue
		}
		if step, isAttr := second(t).(hcl.TraverseAttr); isAttr {
			if _, set := d.env[step.Name]; !set {
				d.fault(pos, "the environment variable "+step.Name+" is not set", "export "+step.Name+"=... before the start")
				ok = false
			}
		}
	}
	return ok
}

func second(t hcl.Traversal) hcl.Traverser {
	if len(t) < 2 {
		return nil
	}
	return t[1]
}

func (d *decoder) pos(r hcl.Range) Pos { return d.src.pos(d.file, r) }
