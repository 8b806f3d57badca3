package mpi

import "github.com/openimpi/impi/core/mpierr"

// badShorthands are calls of the functions for slices that no other table has: they
// check their arguments as the methods do.
var badShorthands = []bad{
	{"Issend to rank 2", mpierr.Rank, func(x *badThings) error { return second(Issend(x.c, x.b, 2, 0)) }},
	{"Ibsend to rank -9", mpierr.Rank, func(x *badThings) error { return second(Ibsend(x.c, x.b, -9, 0)) }},
	{"Irsend with any tag", mpierr.Tag, func(x *badThings) error { return second(Irsend(x.c, x.b, x.right, AnyTag)) }},
	{"BsendInit to rank 2", mpierr.Rank, func(x *badThings) error { return second(BsendInit(x.c, x.b, 2, 0)) }},
	{"RsendInit with a tag above TAG_UB", mpierr.Tag, func(x *badThings) error { return second(RsendInit(x.c, x.b, x.right, 40_001)) }},
	{"Isendrecv to rank 2", mpierr.Rank, func(x *badThings) error { return second(Isendrecv(x.c, x.b, 2, 0, x.b, x.right, 0)) }},
	{"IsendrecvReplace from rank 2", mpierr.Rank, func(x *badThings) error { return second(IsendrecvReplace(x.c, x.b, x.right, 0, 2, 0)) }},
	{"Status of what a copy completed", mpierr.Request, func(x *badThings) error { q := x.done; return third(q.Status()) }},
	{"Wait of it", mpierr.Request, func(x *badThings) error { q := x.done; return second(q.Wait()) }},
	{"Testany of it", mpierr.Request, func(x *badThings) error { return fourth(Testany([]Request{x.done})) }},
	{"Testsome of it", mpierr.InStatus, func(x *badThings) error { return third(Testsome([]Request{x.done}, nil)) }},
	{"Statusany of it", mpierr.Request, func(x *badThings) error { return fourth(Statusany([]Request{x.done})) }},
	{"Statussome of it", mpierr.Request, func(x *badThings) error { return third(Statussome([]Request{x.done}, nil)) }},
	{"Statusall of it", mpierr.Request, func(x *badThings) error { return second(Statusall([]Request{x.done}, nil)) }},

	{"Gatherv at rank 2", mpierr.Root, func(x *badThings) error { return Gatherv(x.c, x.b, nil, nil, nil, 2) }},
	{"Scatterv from rank -1", mpierr.Root, func(x *badThings) error { return Scatterv(x.c, nil, nil, nil, x.b, -1) }},
	{"Igather at rank 2", mpierr.Root, func(x *badThings) error { return second(Igather(x.c, x.b, nil, 2)) }},
	{"Igatherv at rank 2", mpierr.Root, func(x *badThings) error { return second(Igatherv(x.c, x.b, nil, nil, nil, 2)) }},
	{"Iscatter from rank 2", mpierr.Root, func(x *badThings) error { return second(Iscatter(x.c, nil, x.b, 2)) }},
	{"Iscatterv from rank 2", mpierr.Root, func(x *badThings) error { return second(Iscatterv(x.c, nil, nil, nil, x.b, 2)) }},
	{"Ireduce at rank 2", mpierr.Root, func(x *badThings) error { return second(Ireduce(x.c, x.b, nil, Max, 2)) }},
	{"Allgather of too much", mpierr.Buffer, func(x *badThings) error { return Allgather(x.c, x.b, make([]byte, 7)) }},
	{"Iallgather of too much", mpierr.Buffer, func(x *badThings) error { return second(Iallgather(x.c, x.b, make([]byte, 7))) }},
	{"Iallgatherv of three", mpierr.Count, func(x *badThings) error {
		return second(Iallgatherv(x.c, x.b, make([]byte, 8), []int{4, 4, 0}, nil))
	}},
	{"Ialltoall of parts that are none", mpierr.Buffer, func(x *badThings) error { return second(Ialltoall(x.c, x.b[:3], make([]byte, 3))) }},
	{"Alltoallv with a negative count", mpierr.Count, func(x *badThings) error {
		return Alltoallv(x.c, x.b, []int{2, -2}, nil, make([]byte, 4), []int{2, 2}, nil)
	}},
	{"Ialltoallv of one", mpierr.Count, func(x *badThings) error {
		return second(Ialltoallv(x.c, x.b, []int{4}, nil, make([]byte, 4), []int{2, 2}, nil))
	}},
	{"Iallreduce by no operation", mpierr.Op, func(x *badThings) error { return second(Iallreduce(x.c, x.b, make([]byte, 4), nil)) }},
	{"Scan by no operation", mpierr.Op, func(x *badThings) error { return Scan(x.c, x.b, make([]byte, 4), nil) }},
	{"Exscan of floats by BOR", mpierr.Op, func(x *badThings) error { return Exscan(x.c, []float64{1}, []float64{0}, BOr) }},
	{"Iscan of floats by LAND", mpierr.Op, func(x *badThings) error { return second(Iscan(x.c, []float64{1}, []float64{0}, LAnd)) }},
	{"Iexscan by no operation", mpierr.Op, func(x *badThings) error { return second(Iexscan(x.c, x.b, make([]byte, 4), nil)) }},
	{"ReduceScatter of one", mpierr.Count, func(x *badThings) error { return ReduceScatter(x.c, x.b, make([]byte, 2), []int{4}, Max) }},
	{"IreduceScatter with a negative count", mpierr.Count, func(x *badThings) error {
		return second(IreduceScatter(x.c, x.b, make([]byte, 2), []int{2, -2}, Max))
	}},
	{"ReduceScatterBlock by no operation", mpierr.Op, func(x *badThings) error { return ReduceScatterBlock(x.c, x.b, make([]byte, 2), nil) }},
	{"IreduceScatterBlock of too little", mpierr.Buffer, func(x *badThings) error {
		return second(IreduceScatterBlock(x.c, x.b[:3], make([]byte, 2), Max))
	}},

	{"NeighborAllgatherv without neighbours", mpierr.Topology, func(x *badThings) error { return NeighborAllgatherv(x.c, x.b, nil, nil, nil) }},
	{"NeighborAlltoall without them", mpierr.Topology, func(x *badThings) error { return NeighborAlltoall(x.c, x.b, nil) }},
	{"NeighborAlltoallv without them", mpierr.Topology, func(x *badThings) error { return NeighborAlltoallv(x.c, x.b, nil, nil, nil, nil, nil) }},
	{"IneighborAllgather without them", mpierr.Topology, func(x *badThings) error { return second(IneighborAllgather(x.c, x.b, nil)) }},
	{"IneighborAllgatherv without them", mpierr.Topology, func(x *badThings) error { return second(IneighborAllgatherv(x.c, x.b, nil, nil, nil)) }},
	{"IneighborAlltoall without them", mpierr.Topology, func(x *badThings) error { return second(IneighborAlltoall(x.c, x.b, nil)) }},
	{"IneighborAlltoallv without them", mpierr.Topology, func(x *badThings) error {
		return second(IneighborAlltoallv(x.c, x.b, nil, nil, nil, nil, nil))
	}},
	{"WinCreate with a freed info", mpierr.Info, func(x *badThings) error { i := NewInfo(); _ = i.Free(); return second(WinCreate(x.c, x.b, i)) }},
}
