//go:build cgo && !386 && !arm

package main

import "C"

import (
	"fmt"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpi"
)

//export abiTypeGetEnvelope
func abiTypeGetEnvelope(h, ints, addrs, types, combiner uintptr) int32 {
	return onType("Type_get_envelope", 0, h, func(t *mpi.Datatype) error {
		e, err := t.Envelope()
		if err != nil {
			return err
		}
		if e.Counts > 0 {
			return fmt.Errorf("%w: the datatype was made with large counts: MPI_Type_get_envelope_c tells them", datatype.ErrType)
		}
		for _, x := range []struct {
			p uintptr
			n int
		}{{ints, e.Ints}, {addrs, e.Addrs}, {types, e.Types}, {combiner, int(e.Combiner)}} {
			if err := putInt("a result", x.p, x.n); err != nil {
				return err
			}
		}
		return nil
	})
}

//export abiTypeGetEnvelopeC
func abiTypeGetEnvelopeC(h, ints, addrs, large, types, combiner uintptr) int32 {
	return onType("Type_get_envelope", 1, h, func(t *mpi.Datatype) error {
		e, err := t.Envelope()
		if err != nil {
			return err
		}
		for _, x := range []struct {
			p uintptr
			n int
		}{{ints, e.Ints}, {addrs, e.Addrs}, {large, e.Counts}, {types, e.Types}} {
			if err := put("a result", x.p, int64(x.n)); err != nil {
				return err
			}
		}
		return putInt("combiner", combiner, int(e.Combiner))
	})
}

// contents are the lists that a program gives for the contents of a datatype.
type contents struct {
	ints, addrs, large, types             uintptr
	maxInts, maxAddrs, maxLarge, maxTypes int64
}

//export abiTypeGetContents
func abiTypeGetContents(h uintptr, maxInts, maxAddrs, maxTypes int32, ints, addrs, types uintptr) int32 {
	to := contents{
		ints: ints, addrs: addrs, types: types,
		maxInts: int64(maxInts), maxAddrs: int64(maxAddrs), maxTypes: int64(maxTypes),
	}
	return onType("Type_get_contents", 0, h, to.store)
}

//export abiTypeGetContentsC
func abiTypeGetContentsC(h uintptr, maxInts, maxAddrs, maxLarge, maxTypes int64, ints, addrs, large, types uintptr) int32 {
	to := contents{ints, addrs, large, types, maxInts, maxAddrs, maxLarge, maxTypes}
	return onType("Type_get_contents", 1, h, to.store)
}

// store stores how t was made.
func (to *contents) store(t *mpi.Datatype) error {
	c, err := t.Contents()
	if err != nil {
		return err
	}
	if int64(len(c.Ints)) > to.maxInts || int64(len(c.Addrs)) > to.maxAddrs ||
		int64(len(c.Counts)) > to.maxLarge || int64(len(c.Types)) > to.maxTypes {
		return fmt.Errorf("%w: there are %d integers, %d addresses, %d large counts and %d datatypes, more than there is room for",
			mpi.ErrArg, len(c.Ints), len(c.Addrs), len(c.Counts), len(c.Types))
	}
	ints, err := array[int32]("array_of_integers", to.ints, len(c.Ints))
	if err != nil {
		return err
	}
	for i, v := range c.Ints {
		ints[i] = int32(v)
	}
	addrs, err := array[int64]("array_of_addresses", to.addrs, len(c.Addrs))
	if err != nil {
		return err
	}
	copy(addrs, c.Addrs)
	large, err := array[int64]("array_of_large_counts", to.large, len(c.Counts))
	if err != nil {
		return err
	}
	copy(large, c.Counts)
	types, err := array[uintptr]("array_of_datatypes", to.types, len(c.Types))
	if err != nil {
		return err
	}
	for i, v := range c.Types {
		types[i] = newType(v)
	}
	return nil
}
