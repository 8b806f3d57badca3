package datatype

import "fmt"

// making returns a function that calls the constructor of a combiner with these arguments, which
// are in the order of Contents (MPI-4.1, 5.1.13), and how many types the function takes.
func making(combiner Combiner, ints, addrs []int64) (construct func([]*Type) (*Type, error), types int, err error) {
	if !arity(combiner, ints, len(addrs)) {
		return nil, 0, fmt.Errorf("datatype: %w: %v of %d integers and %d addresses", ErrEncoding, combiner, len(ints), len(addrs))
	}
	types = 1
	switch combiner {
	case CombinerStruct:
		types = len(addrs)
		construct = func(t []*Type) (*Type, error) { return Struct(ints[1:], addrs, t) }
	case CombinerF90Real:
		return func([]*Type) (*Type, error) { return F90Real(ints[0], ints[1]) }, 0, nil
	case CombinerF90Complex:
		return func([]*Type) (*Type, error) { return F90Complex(ints[0], ints[1]) }, 0, nil
	case CombinerF90Integer:
		return func([]*Type) (*Type, error) { return F90Integer(ints[0]) }, 0, nil
	default:
		construct = func(t []*Type) (*Type, error) { return ofOne(combiner, ints, addrs, t[0]) }
	}
	return construct, types, nil
}

func arity(combiner Combiner, ints []int64, addrs int) bool {
	n, first := len(ints), int64(-1) // the first argument, if there is one
	if n > 0 {
		first = ints[0]
	}
	switch combiner {
	case CombinerDup:
		return n == 0 && addrs == 0
	case CombinerContiguous, CombinerF90Integer:
		return n == 1 && addrs == 0
	case CombinerF90Real, CombinerF90Complex:
		return n == 2 && addrs == 0
	case CombinerVector:
		return n == 3 && addrs == 0
	case CombinerHvector:
		return n == 2 && addrs == 1
	case CombinerResized:
		return n == 0 && addrs == 2
	case CombinerIndexed:
		return n%2 == 1 && first == int64(n/2) && addrs == 0
	case CombinerHindexed, CombinerStruct:
		return n > 0 && first == int64(n-1) && addrs == n-1
	case CombinerIndexedBlock:
		return n >= 2 && first == int64(n-2) && addrs == 0
	case CombinerHindexedBlock:
		return n == 2 && first == int64(addrs)
	case CombinerSubarray:
		return n >= 5 && (n-2)%3 == 0 && first == int64(n-2)/3 && addrs == 0
	case CombinerDarray:
		return n >= 8 && (n-4)%4 == 0 && ints[2] == int64(n-4)/4 && addrs == 0
	default:
		return false
	}
}

func ofOne(combiner Combiner, ints, addrs []int64, old *Type) (*Type, error) {
	n := len(ints)
	switch combiner {
	case CombinerDup:
		return Dup(old)
	case CombinerContiguous:
		return Contiguous(ints[0], old)
	case CombinerVector:
		return Vector(ints[0], ints[1], ints[2], old)
	case CombinerHvector:
		return Hvector(ints[0], ints[1], addrs[0], old)
	case CombinerResized:
		return Resized(old, addrs[0], addrs[1])
	case CombinerIndexed:
		return Indexed(ints[1:1+n/2], ints[1+n/2:], old)
	case CombinerHindexed:
		return Hindexed(ints[1:], addrs, old)
	case CombinerIndexedBlock:
		return IndexedBlock(ints[1], ints[2:], old)
	case CombinerHindexedBlock:
		return HindexedBlock(ints[1], addrs, old)
	case CombinerSubarray:
		dims := (n - 2) / 3
		return Subarray(ints[1:1+dims], ints[1+dims:1+2*dims], ints[1+2*dims:n-1], Order(ints[n-1]), old)
	default:
		return remakeDarray(ints, old)
	}
}

func remakeDarray(ints []int64, old *Type) (*Type, error) {
	dims := (len(ints) - 4) / 4
	spreads := make([]Spread, dims)
	for i := range spreads {
		of := func(list int) int64 { return ints[3+list*dims+i] }
		spreads[i] = Spread{Size: of(0), How: Distribution(of(1)), Arg: of(2), Procs: of(3)}
	}
	return Darray(ints[0], ints[1], spreads, Order(ints[len(ints)-1]), old)
}
