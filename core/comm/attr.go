package comm

import "slices"

// Attrs are the attributes of an object, in the order in which they were attached (MPI-4.1, 7.7).
// The zero value is empty. The Keys of the process guard it.
type Attrs struct{ list []*attr }

type attr struct {
	key     *key
	value   any
	leaving bool // its Deleter is running, so it is being removed
}

// rounds is how many times clear goes over the attributes: Deleters may attach others.
const rounds = 4

// Set attaches a value to an object, whose Attrs are a. A value that is already attached is deleted
// first (MPI-4.1, 7.7.2); if its Deleter fails, the old value stays and the Deleter's error is
// returned.
func (k *Keys) Set(f Family, a *Attrs, object any, n Keyval, value any) error {
	k.lock()
	defer k.unlock()
	x, err := k.find(f, n)
	if err != nil {
		return err
	}
	x.holders++ // for the new attribute
	for range rounds {
		if old := a.find(n); old != nil {
			if err := k.remove(a, object, old); err != nil {
				k.release(x)
				return err
			}
		}
	}
	if old := a.find(n); old != nil { // its Deleter has attached it again, or is running
		k.detach(a, old)
	}
	a.list = append(a.list, &attr{key: x, value: value})
	return nil
}

// Get returns the value that is attached; ok is false if there is none.
func (k *Keys) Get(f Family, a *Attrs, n Keyval) (value any, ok bool, err error) {
	k.lock()
	defer k.unlock()
	if _, err := k.find(f, n); err != nil {
		return nil, false, err
	}
	if x := a.find(n); x != nil {
		return x.value, true, nil
	}
	return nil, false, nil
}

// Delete removes the value that is attached, if there is one. If its Deleter fails, the value
// stays.
func (k *Keys) Delete(f Family, a *Attrs, object any, n Keyval) error {
	k.lock()
	defer k.unlock()
	if _, err := k.find(f, n); err != nil {
		return err
	}
	if x := a.find(n); x != nil {
		return k.remove(a, object, x)
	}
	return nil
}

// Copy returns the attributes for a duplicate of an object, by calling the Copiers in the order of
// attachment (MPI-4.1, 7.7.2). After an error the caller has to Drop the copies.
func (k *Keys) Copy(a *Attrs, object any) (copies Attrs, err error) {
	k.lock()
	defer k.unlock()
	for _, x := range slices.Clone(a.list) {
		if x.key.copy == nil || !slices.Contains(a.list, x) {
			continue
		}
		key := x.key
		key.holders++
		value, keep, err := k.callCopy(x, object)
		switch {
		case err != nil:
			k.release(key)
			return copies, err
		case !keep:
			k.release(key)
		default:
			copies.list = append(copies.list, &attr{key: key, value: value})
		}
	}
	return copies, nil
}

// Clear deletes all attributes of an object that is freed, the last one attached first, as MPI
// requires for MPI_COMM_SELF in Finalize (MPI-4.1, 11.2.4). It stops at the first Deleter that
// fails; its attribute and those attached before it stay.
func (k *Keys) Clear(a *Attrs, object any) error { return k.clear(a, object, false) }

// Drop is like Clear, but continues after errors and returns none.
func (k *Keys) Drop(a *Attrs, object any) { _ = k.clear(a, object, true) }

func (k *Keys) clear(a *Attrs, object any, force bool) error {
	k.lock()
	defer k.unlock()
	for range rounds {
		for _, x := range slices.Backward(slices.Clone(a.list)) {
			if !slices.Contains(a.list, x) {
				continue
			}
			if err := k.remove(a, object, x); err != nil && !force {
				return err
			}
			k.detach(a, x)
		}
	}
	for len(a.list) > 0 { // of Deleters that attach again each time
		k.detach(a, a.list[0])
	}
	return nil
}

// remove calls x's Deleter and removes x, unless somebody has done so meanwhile. It does
// nothing if x is being removed already.
func (k *Keys) remove(a *Attrs, object any, x *attr) error {
	if x.leaving {
		return nil
	}
	if x.key.delete != nil {
		key := x.key
		key.holders++
		defer k.release(key)
		if err := k.callDelete(x, object); err != nil {
			return err
		}
	}
	k.detach(a, x)
	return nil
}

// callDelete calls x's Deleter without the lock.
func (k *Keys) callDelete(x *attr, object any) error {
	x.leaving = true
	defer func() { x.leaving = false }()
	del, n, value, extra := x.key.delete, x.key.number, x.value, x.key.extra
	k.unlock()
	defer k.lock()
	return del(object, n, value, extra)
}

// callCopy calls x's Copier without the lock.
func (k *Keys) callCopy(x *attr, object any) (value any, keep bool, err error) {
	cp, n, value, extra := x.key.copy, x.key.number, x.value, x.key.extra
	k.unlock()
	defer k.lock()
	return cp(object, n, extra, value)
}

func (k *Keys) detach(a *Attrs, x *attr) {
	if i := slices.Index(a.list, x); i >= 0 {
		a.list = slices.Delete(a.list, i, i+1)
		k.release(x.key)
	}
}

func (a *Attrs) find(n Keyval) *attr {
	for _, x := range a.list {
		if x.key.number == n {
			return x
		}
	}
	return nil
}
