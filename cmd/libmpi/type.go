//go:build cgo && !386 && !arm

package main

import "C"

import (
	"fmt"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpi"
)

// storeType stores the handle of a new datatype, or of none. which is 1 if it was made with large
// counts, which MPI_Type_get_envelope has to tell.
func storeType(to *uintptr, which int32, t *mpi.Datatype) (err error) {
	if t == nil {
		*to = datatypeNull
		return nil
	}
	if which != 0 && !t.Named() {
		t, err = t.WithLarge()
	}
	if err == nil {
		*to = newType(t)
	}
	return err
}

// valueIndex returns the predefined pair of a value and an index; nil if C has none. That of an
// int64_t is the one of a long, which has the same form.
func valueIndex(value, index *mpi.Datatype) (*mpi.Datatype, error) {
	t, err := datatype.ValueIndex(value, index)
	if t != nil && t == datatype.Basic(datatype.PairInt64) {
		if t = datatype.Basic(datatype.PairLong); t.Size() != datatype.Basic(datatype.PairInt64).Size() {
			return nil, err // long has 4 bytes
		}
	}
	return t, err
}

func matchSize(class, size int) (*mpi.Datatype, error) {
	return datatype.MatchSize(datatype.TypeClass(class), int64(size))
}

func bounds(t *mpi.Datatype) (lb, extent int64) { return t.LB(), t.Extent() }

func trueBounds(t *mpi.Datatype) (lb, extent int64) { return t.TrueLB(), t.TrueExtent() }

func commit(p uintptr) error {
	h, err := result[uintptr]("datatype", p)
	if err != nil {
		return err
	}
	t, err := takeType("datatype", *h)
	if err != nil {
		return err
	}
	return t.Commit()
}

func freeType(h uintptr) error {
	t, err := takeType("datatype", h)
	if err == nil {
		err = mpi.TypeFree(t)
	}
	if err == nil {
		typeHandles.Delete(t)
		types.Free(h)
	}
	return err
}

//export abiTypeSize
func abiTypeSize(h, out uintptr, which int32) int32 {
	return on("Type_size", which, func() error {
		t, err := takeType("datatype", h)
		if err != nil {
			return err
		}
		return putWide("size", out, which, t.Size())
	})
}

// envelope says how a datatype was made, if that was without large counts.
func envelope(t *mpi.Datatype) (ints, addrs, types, combiner int, err error) {
	e, err := t.Envelope()
	if err == nil && e.Counts > 0 {
		err = fmt.Errorf("%w: the datatype was made with large counts: MPI_Type_get_envelope_c tells them", datatype.ErrType)
	}
	return e.Ints, e.Addrs, e.Types, int(e.Combiner), err
}

func largeEnvelope(t *mpi.Datatype) (ints, addrs, large, types int64, combiner int, err error) {
	e, err := t.Envelope()
	return int64(e.Ints), int64(e.Addrs), int64(e.Counts), int64(e.Types), int(e.Combiner), err
}

// storeContents stores what a datatype was made of, in lists that have room for so many.
func storeContents(t *mpi.Datatype, maxInts, maxAddrs, maxLarge, maxTypes int64, ints, addrs, large, types uintptr) error {
	c, err := t.Contents()
	if err != nil {
		return err
	}
	if int64(len(c.Ints)) > maxInts || int64(len(c.Addrs)) > maxAddrs || int64(len(c.Counts)) > maxLarge || int64(len(c.Types)) > maxTypes {
		return fmt.Errorf("%w: there are %d integers, %d addresses, %d large counts and %d datatypes, more than there is room for",
			mpi.ErrArg, len(c.Ints), len(c.Addrs), len(c.Counts), len(c.Types))
	}
	if err := putList("array_of_integers", ints, c.Ints, func(v int64) int32 { return int32(v) }); err != nil {
		return err
	}
	same := func(v int64) int64 { return v }
	if err := putList("array_of_addresses", addrs, c.Addrs, same); err != nil {
		return err
	}
	if err := putList("array_of_large_counts", large, c.Counts, same); err != nil {
		return err
	}
	return putList("array_of_datatypes", types, c.Types, newType)
}

func putList[From, To any](name string, p uintptr, list []From, as func(From) To) error {
	to, err := array[To](name, p, len(list))
	for i := range to {
		to[i] = as(list[i])
	}
	return err
}

// typeName is MPI_Type_get_name, which has an answer for MPI_DATATYPE_NULL, too (MPI-4.1, 7.8).
func typeName(fn string, h, name, length uintptr) int32 {
	return on(fn, 0, func() error {
		text := "MPI_DATATYPE_NULL"
		if h != datatypeNull {
			t, err := takeType("datatype", h)
			if err != nil {
				return err
			}
			text = t.Name()
		}
		return putSizedText("type_name", name, maxObjectName, length, text)
	})
}
