package mpi

import (
	"sync"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
)

// CreateTypeKeyval makes a key for attributes of datatypes, as CreateKeyval does
// for communicators. Datatypes are duplicated by TypeDup and end by TypeFree.
func CreateTypeKeyval(cp CopyFunc[*Datatype], del DeleteFunc[*Datatype], extra any) (Keyval, error) {
	key, err := createKeyval(comm.TypeFamily, cp, del, extra)
	return key, failed("CreateTypeKeyval", err)
}

// FreeTypeKeyval is FreeKeyval for a key of datatypes.
func FreeTypeKeyval(key *Keyval) error {
	return failed("FreeTypeKeyval", freeKeyval(comm.TypeFamily, key))
}

// TypeSetAttr is SetAttr for datatypes, the predefined ones included.
func TypeSetAttr(t *Datatype, key Keyval, value any) error {
	attrs, err := typeAttrs(t)
	if err == nil {
		err = keyvals.Set(comm.TypeFamily, attrs, t, key, value)
	}
	return failed("TypeSetAttr", err)
}

// TypeAttr is Attr for datatypes.
func TypeAttr(t *Datatype, key Keyval) (value any, ok bool, err error) {
	attrs, err := typeAttrs(t)
	if err == nil {
		value, ok, err = keyvals.Get(comm.TypeFamily, attrs, key)
	}
	return value, ok, failed("TypeAttr", err)
}

// TypeDeleteAttr is DeleteAttr for datatypes.
func TypeDeleteAttr(t *Datatype, key Keyval) error {
	attrs, err := typeAttrs(t)
	if err == nil {
		err = keyvals.Delete(comm.TypeFamily, attrs, t, key)
	}
	return failed("TypeDeleteAttr", err)
}

// TypeDup makes a datatype like t, committed if t is, with those attributes that
// their CopyFuncs say.
func TypeDup(t *Datatype) (*Datatype, error) {
	d, err := typeDup(t)
	return d, failed("TypeDup", err)
}

func typeDup(t *Datatype) (*Datatype, error) {
	attrs, err := typeAttrs(t)
	if err != nil {
		return nil, err
	}
	d, err := datatype.Dup(t)
	if err != nil {
		return nil, err
	}
	copies, err := keyvals.Copy(attrs, t)
	if err != nil {
		keyvals.Drop(&copies, d)
		return nil, err
	}
	d.Attach(&copies)
	return d, nil
}

// TypeFree deletes the attributes of t and then frees it. If the first fails t
// stays.
func TypeFree(t *Datatype) error { return failed("TypeFree", typeFree(t)) }

func typeFree(t *Datatype) error {
	attrs, err := typeAttrs(t)
	if err == nil && !t.Named() {
		err = keyvals.Clear(attrs, t)
	}
	if err != nil {
		return err
	}
	return t.Free()
}

// attaching guards what handles of datatypes have attached.
var attaching sync.Mutex

// typeAttrs gives the attributes of a datatype that can be used.
func typeAttrs(t *Datatype) (*comm.Attrs, error) {
	if err := t.Valid(); err != nil {
		return nil, err
	}
	attaching.Lock()
	defer attaching.Unlock()
	attrs, ok := t.Attached().(*comm.Attrs)
	if !ok {
		attrs = new(comm.Attrs)
		t.Attach(attrs)
	}
	return attrs, nil
}
