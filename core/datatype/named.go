package datatype

// named is a row of MPI's table of predefined types (MPI-4.1, 3.2.2).
type named struct {
	name   string
	handle int // handle in the ABI; ours are above 0xc00, in the range for experiments
	kind   Kind
}

// namedTypes are all predefined types that this implementation supports. Basic returns the
// first one with a Kind.
var namedTypes = []named{
	{"MPI_BYTE", 0x247, Byte}, {"MPI_PACKED", 0x207, Packed},
	{"MPI_C_BOOL", 0x238, Bool}, {"MPI_CXX_BOOL", 0x239, Bool},
	{"MPI_INT8_T", 0x240, Int8}, {"MPI_INT16_T", 0x248, Int16}, {"MPI_INT32_T", 0x250, Int32}, {"MPI_INT64_T", 0x258, Int64},
	{"MPI_UINT8_T", 0x241, Uint8}, {"MPI_UINT16_T", 0x249, Uint16}, {"MPI_UINT32_T", 0x251, Uint32}, {"MPI_UINT64_T", 0x259, Uint64},
	{"MPI_FLOAT", 0x210, Float32}, {"MPI_DOUBLE", 0x214, Float64}, {"MPI_LONG_DOUBLE", 0x220, LongDouble},
	{"MPI_C_FLOAT_COMPLEX", 0x212, Complex64}, {"MPI_C_DOUBLE_COMPLEX", 0x216, Complex128},
	{"MPI_C_LONG_DOUBLE_COMPLEX", 0x224, ComplexLongDouble},
	{"MPI_CXX_FLOAT_COMPLEX", 0x213, Complex64}, {"MPI_CXX_DOUBLE_COMPLEX", 0x217, Complex128},
	{"MPI_CXX_LONG_DOUBLE_COMPLEX", 0x225, ComplexLongDouble},

	{"MPI_CHAR", 0x243, Char}, {"MPI_SIGNED_CHAR", 0x244, Int8}, {"MPI_UNSIGNED_CHAR", 0x245, Uint8}, {"MPI_WCHAR", 0x23c, WChar},
	{"MPI_SHORT", 0x208, Int16}, {"MPI_INT", 0x209, Int32}, {"MPI_LONG", 0x20a, Long}, {"MPI_LONG_LONG", 0x20b, Int64},
	{"MPI_UNSIGNED_SHORT", 0x20c, Uint16}, {"MPI_UNSIGNED", 0x20d, Uint32}, {"MPI_UNSIGNED_LONG", 0x20e, ULong},
	{"MPI_UNSIGNED_LONG_LONG", 0x20f, Uint64},
	{"MPI_AINT", 0x201, Int64}, {"MPI_COUNT", 0x202, Int64}, {"MPI_OFFSET", 0x203, Int64},

	{"MPI_FLOAT_INT", 0x228, PairFloat32}, {"MPI_DOUBLE_INT", 0x229, PairFloat64}, {"MPI_LONG_INT", 0x22a, PairLong},
	{"MPI_2INT", 0x22b, PairInt32}, {"MPI_SHORT_INT", 0x22c, PairInt16}, {"MPI_LONG_DOUBLE_INT", 0x22d, PairLongDouble},
	{"MPI_2REAL", 0x230, Pair2Float32}, {"MPI_2DOUBLE_PRECISION", 0x231, Pair2Float64}, {"MPI_2INTEGER", 0x232, PairInt32},

	{"MPI_LOGICAL", 0x218, Logical32}, {"MPI_INTEGER", 0x219, Int32}, {"MPI_REAL", 0x21a, Float32}, {"MPI_COMPLEX", 0x21b, Complex64},
	{"MPI_DOUBLE_PRECISION", 0x21c, Float64}, {"MPI_DOUBLE_COMPLEX", 0x21d, Complex128}, {"MPI_CHARACTER", 0x21e, Char},
	{"MPI_LOGICAL1", 0x2c0, Logical8}, {"MPI_LOGICAL2", 0x2c8, Logical16}, {"MPI_LOGICAL4", 0x2d0, Logical32}, {"MPI_LOGICAL8", 0x2d8, Logical64},
	{"MPI_INTEGER1", 0x2c1, Int8}, {"MPI_INTEGER2", 0x2c9, Int16}, {"MPI_INTEGER4", 0x2d1, Int32}, {"MPI_INTEGER8", 0x2d9, Int64},
	{"MPI_REAL4", 0x2d2, Float32}, {"MPI_REAL8", 0x2da, Float64}, {"MPI_COMPLEX8", 0x2db, Complex64}, {"MPI_COMPLEX16", 0x2e3, Complex128},
	{"MPI_REAL2", 0x2ca, Float16}, {"MPI_REAL16", 0x2e2, Float128}, {"MPI_COMPLEX4", 0x2d3, Complex32}, {"MPI_COMPLEX32", 0x2eb, Complex256},
	{"MPI_INTEGER16", 0x2e1, Int128}, {"MPI_LOGICAL16", 0x2e0, Logical128},

	{"IMPI_GO_INT", 0xc01, Int}, {"IMPI_GO_UINT", 0xc02, Uint}, {"IMPI_GO_INT_INT", 0xc03, PairInt}, {"IMPI_INT64_INT", 0xc04, PairInt64},
}

// The markers of MPI-1 have no elements, and set the bounds of a Struct where they are. MPI has
// removed them; Resized does the same (MPI-4.1, 5.1.6).
var (
	LBMarker = marker("MPI_LB", 0xc10, markLB)
	UBMarker = marker("MPI_UB", 0xc11, markUB)
)

var (
	basics   [kinds]*Type
	byName   = make(map[string]*Type)
	byHandle = make(map[int]*Type)
)

func init() {
	for _, n := range namedTypes {
		t := predefine(basic(n), n)
		if basics[n.kind] == nil {
			basics[n.kind] = t
		}
	}
}

func marker(name string, handle int, m marks) *Type {
	d := &def{how: how{combiner: CombinerNamed, handle: handle}, shape: shape{form: formStruct}, sig: emptySignature, align: 1, marks: m}
	return predefine(d, named{name: name, handle: handle})
}

func predefine(d *def, n named) *Type {
	t := own(d)
	t.name.Store(&n.name)
	byName[n.name], byHandle[n.handle] = t, t
	return t
}

// own makes d the def of a predefined type: it gets its only handle, which is committed and cannot
// be freed.
func own(d *def) *Type {
	d.own = handle(d)
	_ = d.own.Commit() // cannot fail for a valid type
	return d.own
}

func basic(n named) *def {
	l := &layouts[n.kind]
	size := int64(l.size)
	d := &def{
		how: how{combiner: CombinerNamed, handle: n.handle}, shape: shape{form: formBasic, kind: n.kind},
		size: size, wire: [classes]int64{size, int64(NativeLE.Size(n.kind)), int64(External32.Size(n.kind)), int64(NativeFloat.Size(n.kind))},
		elements: 1, sig: kindSignature(n.kind), kinds: 1 << n.kind,
		ub: size, tub: size, end: size, align: int64(l.align),
	}
	if l.pair() {
		d.size, d.elements = int64(l.width)*int64(l.count), 2
	}
	if l.index > 0 {
		d.size, d.tub = int64(l.width)+4, int64(l.index)+4
	}
	return d
}

// Basic returns the predefined type of a kind, or nil if kind is not one. The result is the same at
// each call.
func Basic(k Kind) *Type {
	if k >= kinds {
		return nil
	}
	return basics[k]
}

// ByName returns the predefined type with MPI's name, or nil if there is none.
func ByName(name string) *Type {
	switch name {
	case "MPI_LONG_LONG_INT":
		name = "MPI_LONG_LONG"
	case "MPI_C_COMPLEX":
		name = "MPI_C_FLOAT_COMPLEX"
	}
	return byName[name]
}

// ByHandle returns the predefined type with a handle's value in MPI's standard ABI, or nil for
// values that are no type.
func ByHandle(value int) *Type { return byHandle[value] }

// Plain returns the kind of a predefined type whose items are elements without gaps, and false for
// all others.
func (t *Type) Plain() (Kind, bool) {
	d := defOf(t)
	return d.kind, d.form == formBasic && d.lb == 0 && d.ub == d.size && d.size == int64(d.kind.Size())
}

// Handle is the inverse of ByHandle. It returns 0 for derived types.
func (t *Type) Handle() int { return defOf(t).handle }

// Kind returns the kind of a predefined type, and false for derived types.
func (t *Type) Kind() (Kind, bool) {
	d := defOf(t)
	return d.kind, d.form == formBasic
}
