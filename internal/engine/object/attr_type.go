package object

import (
	"sync"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/internal/engine/proc"
)

func TypeSetAttr(t *proc.Datatype, key comm.Keyval, value any) error {
	attrs, err := typeAttrs(t)
	if err == nil {
		err = Keyvals.Set(comm.TypeFamily, attrs, t, key, value)
	}
	return err
}

func TypeAttr(t *proc.Datatype, key comm.Keyval) (value any, ok bool, err error) {
	attrs, err := typeAttrs(t)
	if err == nil {
		value, ok, err = Keyvals.Get(comm.TypeFamily, attrs, key)
	}
	return value, ok, err
}

func TypeDeleteAttr(t *proc.Datatype, key comm.Keyval) error {
	attrs, err := typeAttrs(t)
	if err == nil {
		err = Keyvals.Delete(comm.TypeFamily, attrs, t, key)
	}
	return err
}

func TypeDup(t *proc.Datatype) (*proc.Datatype, error) {
	attrs, err := typeAttrs(t)
	if err != nil {
		return nil, err
	}
	d, err := datatype.Dup(t)
	if err != nil {
		return nil, err
	}
	copies, err := Keyvals.Copy(attrs, t)
	if err != nil {
		Keyvals.Drop(&copies, d)
		return nil, err
	}
	d.Attach(&copies)
	return d, nil
}

func TypeFree(t *proc.Datatype) error {
	attrs, err := typeAttrs(t)
	if err == nil && !t.Named() {
		err = Keyvals.Clear(attrs, t)
	}
	if err != nil {
		return err
	}
	return t.Free()
}

// attaching guards the attributes that are attached to datatypes.
var attaching sync.Mutex

func typeAttrs(t *proc.Datatype) (*comm.Attrs, error) {
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
