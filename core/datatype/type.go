package datatype

// Type is a datatype: a basic one or one derived from others.
type Type struct {
	kind Kind // of a basic one
}

var basic = func() (all [kinds]Type) {
	for k := range all {
		all[k].kind = Kind(k)
	}
	return all
}()

// Basic gives the datatype of one element of k, nil for what is no kind.
func Basic(k Kind) *Type {
	if !k.Valid() {
		return nil
	}
	return &basic[k]
}

// Kind tells the kind of a basic datatype; Invalid for derived ones.
func (t *Type) Kind() Kind { return t.kind }
