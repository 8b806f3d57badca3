//go:build cgo && !386 && !arm

package main

import "C"

import (
	"fmt"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpi"
)

// onType is a call on a datatype.
func onType(fn string, which int32, h uintptr, f func(t *mpi.Datatype) error) int32 {
	return on(fn, which, func() error {
		t, err := takeType("datatype", h)
		if err != nil {
			return err
		}
		return f(t)
	})
}

// makeType makes a datatype of another and stores its handle.
func makeType(fn string, which int32, old, out uintptr, f func(t *mpi.Datatype) (*mpi.Datatype, error)) int32 {
	return on(fn, which, func() error {
		t, err := takeType("oldtype", old)
		if err != nil {
			return err
		}
		return putType(which, out, func() (*mpi.Datatype, error) { return f(t) })
	})
}

// putType stores the handle of a new datatype.
func putType(which int32, out uintptr, f func() (*mpi.Datatype, error)) error {
	to, err := result[uintptr]("newtype", out)
	if err != nil {
		return err
	}
	t, err := f()
	if err == nil && which != 0 && !t.Named() {
		t, err = t.WithLarge()
	}
	if err != nil {
		return err
	}
	*to = newType(t)
	return nil
}

//export abiTypeContiguous
func abiTypeContiguous(count int64, old, out uintptr, which int32) int32 {
	return makeType("Type_contiguous", which, old, out, func(t *mpi.Datatype) (*mpi.Datatype, error) {
		return mpi.TypeContiguous(count, t)
	})
}

//export abiTypeVector
func abiTypeVector(count, length, stride int64, old, out uintptr, which int32) int32 {
	return makeType("Type_vector", which, old, out, func(t *mpi.Datatype) (*mpi.Datatype, error) {
		return mpi.TypeVector(count, length, stride, t)
	})
}

//export abiTypeCreateHvector
func abiTypeCreateHvector(count, length, stride int64, old, out uintptr, which int32) int32 {
	return makeType("Type_create_hvector", which, old, out, func(t *mpi.Datatype) (*mpi.Datatype, error) {
		return mpi.TypeHvector(count, length, stride, t)
	})
}

// lists gives block lengths and displacements; the latter are MPI_Aints if wide.
func lists(count int64, lens, disps uintptr, which int32, wide bool) (l, d []int64, err error) {
	if count < 0 {
		return nil, nil, fmt.Errorf("%w: count is %d", datatype.ErrCount, count)
	}
	if l, err = counts("array_of_blocklengths", lens, int(count), which); err != nil {
		return nil, nil, err
	}
	if wide {
		which = 1
	}
	d, err = counts("array_of_displacements", disps, int(count), which)
	return l, d, err
}

//export abiTypeIndexed
func abiTypeIndexed(count int64, lens, disps, old, out uintptr, which int32) int32 {
	return makeType("Type_indexed", which, old, out, func(t *mpi.Datatype) (*mpi.Datatype, error) {
		l, d, err := lists(count, lens, disps, which, false)
		if err != nil {
			return nil, err
		}
		return mpi.TypeIndexed(l, d, t)
	})
}

//export abiTypeCreateHindexed
func abiTypeCreateHindexed(count int64, lens, disps, old, out uintptr, which int32) int32 {
	return makeType("Type_create_hindexed", which, old, out, func(t *mpi.Datatype) (*mpi.Datatype, error) {
		l, d, err := lists(count, lens, disps, which, true)
		if err != nil {
			return nil, err
		}
		return mpi.TypeHindexed(l, d, t)
	})
}

//export abiTypeCreateIndexedBlock
func abiTypeCreateIndexedBlock(count, length int64, disps, old, out uintptr, which int32) int32 {
	return makeType("Type_create_indexed_block", which, old, out, func(t *mpi.Datatype) (*mpi.Datatype, error) {
		d, err := counts("array_of_displacements", disps, int(count), which)
		if err != nil {
			return nil, err
		}
		return mpi.TypeIndexedBlock(length, d, t)
	})
}

//export abiTypeCreateHindexedBlock
func abiTypeCreateHindexedBlock(count, length int64, disps, old, out uintptr, which int32) int32 {
	return makeType("Type_create_hindexed_block", which, old, out, func(t *mpi.Datatype) (*mpi.Datatype, error) {
		d, err := counts("array_of_displacements", disps, int(count), 1)
		if err != nil {
			return nil, err
		}
		return mpi.TypeHindexedBlock(length, d, t)
	})
}

//export abiTypeCreateStruct
func abiTypeCreateStruct(count int64, lens, disps, olds, out uintptr, which int32) int32 {
	return on("Type_create_struct", which, func() error {
		l, d, err := lists(count, lens, disps, which, true)
		if err != nil {
			return err
		}
		hs, err := touched[uintptr]("array_of_types", olds, int(count))
		if err != nil {
			return err
		}
		ts := make([]*mpi.Datatype, len(hs))
		for i, h := range hs {
			if ts[i], err = takeType(fmt.Sprintf("array_of_types[%d]", i), h); err != nil {
				return err
			}
		}
		return putType(which, out, func() (*mpi.Datatype, error) { return mpi.TypeStruct(l, d, ts) })
	})
}

//export abiTypeCreateSubarray
func abiTypeCreateSubarray(dims int32, sizes, subsizes, starts uintptr, order int32, old, out uintptr, which int32) int32 {
	return makeType("Type_create_subarray", which, old, out, func(t *mpi.Datatype) (*mpi.Datatype, error) {
		a, err := counts("array_of_sizes", sizes, int(dims), which)
		if err != nil {
			return nil, err
		}
		b, err := counts("array_of_subsizes", subsizes, int(dims), which)
		if err != nil {
			return nil, err
		}
		c, err := counts("array_of_starts", starts, int(dims), which)
		if err != nil {
			return nil, err
		}
		return mpi.TypeSubarray(a, b, c, mpi.Order(order), t)
	})
}

//export abiTypeCreateDarray
func abiTypeCreateDarray(size, rank, dims int32, gsizes, distribs, dargs, psizes uintptr, order int32, old, out uintptr, which int32) int32 {
	return makeType("Type_create_darray", which, old, out, func(t *mpi.Datatype) (*mpi.Datatype, error) {
		g, err := counts("array_of_gsizes", gsizes, int(dims), which)
		if err != nil {
			return nil, err
		}
		how, err := counts("array_of_distribs", distribs, int(dims), 0)
		if err != nil {
			return nil, err
		}
		args, err := counts("array_of_dargs", dargs, int(dims), 0)
		if err != nil {
			return nil, err
		}
		procs, err := counts("array_of_psizes", psizes, int(dims), 0)
		if err != nil {
			return nil, err
		}
		spreads := make([]mpi.Spread, len(g))
		for i := range spreads {
			spreads[i] = mpi.Spread{Size: g[i], How: datatype.Distribution(how[i]), Arg: args[i], Procs: procs[i]}
		}
		return mpi.TypeDarray(int64(size), int64(rank), spreads, mpi.Order(order), t)
	})
}

//export abiTypeCreateResized
func abiTypeCreateResized(old uintptr, lb, extent int64, out uintptr, which int32) int32 {
	return makeType("Type_create_resized", which, old, out, func(t *mpi.Datatype) (*mpi.Datatype, error) {
		return mpi.TypeResized(t, lb, extent)
	})
}

//export abiTypeDup
func abiTypeDup(old, out uintptr) int32 {
	return makeType("Type_dup", 0, old, out, mpi.TypeDup)
}

//export abiTypeCreateF90Integer
func abiTypeCreateF90Integer(r int32, out uintptr) int32 {
	return on("Type_create_f90_integer", 0, func() error {
		return putType(0, out, func() (*mpi.Datatype, error) { return datatype.F90Integer(int64(r)) })
	})
}

//export abiTypeCreateF90Real
func abiTypeCreateF90Real(p, r int32, out uintptr) int32 {
	return on("Type_create_f90_real", 0, func() error {
		return putType(0, out, func() (*mpi.Datatype, error) { return datatype.F90Real(int64(p), int64(r)) })
	})
}

//export abiTypeCreateF90Complex
func abiTypeCreateF90Complex(p, r int32, out uintptr) int32 {
	return on("Type_create_f90_complex", 0, func() error {
		return putType(0, out, func() (*mpi.Datatype, error) { return datatype.F90Complex(int64(p), int64(r)) })
	})
}

//export abiTypeMatchSize
func abiTypeMatchSize(class, size int32, out uintptr) int32 {
	return on("Type_match_size", 0, func() error {
		return putType(0, out, func() (*mpi.Datatype, error) {
			return datatype.MatchSize(datatype.TypeClass(class), int64(size))
		})
	})
}

//export abiTypeGetValueIndex
func abiTypeGetValueIndex(value, index, out uintptr) int32 {
	return on("Type_get_value_index", 0, func() error {
		v, err := takeType("value_type", value)
		if err != nil {
			return err
		}
		i, err := takeType("index_type", index)
		if err != nil {
			return err
		}
		t, err := datatype.ValueIndex(v, i)
		if err != nil {
			return err
		}
		if t == nil {
			return put("pair_type", out, uintptr(datatypeNull))
		}
		return put("pair_type", out, newType(t))
	})
}

//export abiTypeCommit
func abiTypeCommit(p uintptr) int32 {
	return on("Type_commit", 0, func() error {
		h, err := result[uintptr]("datatype", p)
		if err != nil {
			return err
		}
		t, err := takeType("datatype", *h)
		if err != nil {
			return err
		}
		return t.Commit()
	})
}

//export abiTypeFree
func abiTypeFree(p uintptr) int32 {
	return on("Type_free", 0, func() error {
		h, err := result[uintptr]("datatype", p)
		if err != nil {
			return err
		}
		t, err := takeType("datatype", *h)
		if err != nil {
			return err
		}
		if err := mpi.TypeFree(t); err != nil {
			return err
		}
		typeHandles.Delete(t)
		types.Free(*h)
		*h = datatypeNull
		return nil
	})
}

//export abiTypeSize
func abiTypeSize(h, out uintptr, which int32) int32 {
	return on("Type_size", which, func() error {
		if optional(h) {
			return putWide("size", out, which, mpi.Undefined) // one that is not supported
		}
		t, err := takeType("datatype", h)
		if err != nil {
			return err
		}
		return putWide("size", out, which, t.Size())
	})
}

//export abiTypeSizeX
func abiTypeSizeX(h, out uintptr) int32 { return abiTypeSize(h, out, oldWide) }

//export abiTypeGetExtent
func abiTypeGetExtent(h, lb, extent uintptr, which int32) int32 {
	return onType("Type_get_extent", which, h, func(t *mpi.Datatype) error {
		if err := put("lb", lb, t.LB()); err != nil {
			return err
		}
		return put("extent", extent, t.Extent())
	})
}

//export abiTypeGetExtentX
func abiTypeGetExtentX(h, lb, extent uintptr) int32 { return abiTypeGetExtent(h, lb, extent, oldWide) }

//export abiTypeGetTrueExtent
func abiTypeGetTrueExtent(h, lb, extent uintptr, which int32) int32 {
	return onType("Type_get_true_extent", which, h, func(t *mpi.Datatype) error {
		if err := put("true_lb", lb, t.TrueLB()); err != nil {
			return err
		}
		return put("true_extent", extent, t.TrueExtent())
	})
}

//export abiTypeGetTrueExtentX
func abiTypeGetTrueExtentX(h, lb, extent uintptr) int32 {
	return abiTypeGetTrueExtent(h, lb, extent, oldWide)
}

//export abiTypeGetName
func abiTypeGetName(h, name, length uintptr) int32 {
	return onType("Type_get_name", 0, h, func(t *mpi.Datatype) error { return putName(name, length, t.Name()) })
}

//export abiTypeSetName
func abiTypeSetName(h, name uintptr) int32 {
	return onType("Type_set_name", 0, h, func(t *mpi.Datatype) error {
		s, err := objectName(name)
		if err != nil {
			return err
		}
		return t.SetName(s)
	})
}
