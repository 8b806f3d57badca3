//go:build cgo && !386 && !arm

package main

import "C"

import (
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/mpi"
)

// bools gives the n truth values at p.
func bools(name string, p uintptr, n int) ([]bool, error) {
	a, err := touched[int32](name, p, n)
	out := make([]bool, len(a))
	for i, v := range a {
		out[i] = v != 0
	}
	return out, err
}

func fromBools(in []bool) []int {
	out := make([]int, len(in))
	for i, b := range in {
		out[i] = int(cbool(b))
	}
	return out
}

// dims checks a number of dimensions.
func dims(n int32) error {
	if n < 0 {
		return fmt.Errorf("%w: ndims is %d", comm.ErrDims, n)
	}
	return nil
}

//export abiTopoTest
func abiTopoTest(c, out uintptr) int32 {
	return onComm("Topo_test", 0, c, func(c *commObject) error {
		kind, err := c.TopoTest()
		if err != nil {
			return err
		}
		return putInt("status", out, kind)
	})
}

//export abiDimsCreate
func abiDimsCreate(nodes, n int32, p uintptr) int32 {
	return on("Dims_create", 0, func() error {
		if err := dims(n); err != nil {
			return err
		}
		d, err := ints("dims", p, int(n))
		if err != nil {
			return err
		}
		if err := mpi.DimsCreate(int(nodes), d); err != nil {
			return err
		}
		return putInts("dims", p, int(n), d)
	})
}

// grid gives sizes and periods.
func grid(n int32, sizes, periods uintptr) (d []int, p []bool, err error) {
	if err = dims(n); err != nil {
		return nil, nil, err
	}
	if d, err = ints("dims", sizes, int(n)); err == nil {
		p, err = bools("periods", periods, int(n))
	}
	return d, p, err
}

//export abiCartCreate
func abiCartCreate(c uintptr, n int32, sizes, periods uintptr, reorder int32, out uintptr) int32 {
	return construct("Cart_create", c, out, func(c *commObject) (*mpi.Comm, error) {
		d, p, err := grid(n, sizes, periods)
		if err != nil {
			return nil, err
		}
		return c.CartCreate(d, p, reorder != 0)
	})
}

//export abiCartMap
func abiCartMap(c uintptr, n int32, sizes, periods, out uintptr) int32 {
	return onComm("Cart_map", 0, c, func(c *commObject) error {
		d, p, err := grid(n, sizes, periods)
		if err != nil {
			return err
		}
		r, err := c.CartMap(d, p)
		if err != nil {
			return err
		}
		return putInt("newrank", out, r)
	})
}

//export abiCartdimGet
func abiCartdimGet(c, out uintptr) int32 {
	return onComm("Cartdim_get", 0, c, func(c *commObject) error {
		n, err := c.CartdimGet()
		if err != nil {
			return err
		}
		return putInt("ndims", out, n)
	})
}

//export abiCartGet
func abiCartGet(c uintptr, room int32, sizes, periods, coords uintptr) int32 {
	return onComm("Cart_get", 0, c, func(c *commObject) error {
		d, p, at, err := c.CartGet()
		if err != nil {
			return err
		}
		if err := putInts("dims", sizes, int(room), d); err != nil {
			return err
		}
		if err := putInts("periods", periods, int(room), fromBools(p)); err != nil {
			return err
		}
		return putInts("coords", coords, int(room), at)
	})
}

//export abiCartRank
func abiCartRank(c, coords, out uintptr) int32 {
	return onComm("Cart_rank", 0, c, func(c *commObject) error {
		n, err := c.CartdimGet()
		if err != nil {
			return err
		}
		at, err := ints("coords", coords, n)
		if err != nil {
			return err
		}
		r, err := c.CartRank(at)
		if err != nil {
			return err
		}
		return putInt("rank", out, r)
	})
}

//export abiCartCoords
func abiCartCoords(c uintptr, rank, room int32, coords uintptr) int32 {
	return onComm("Cart_coords", 0, c, func(c *commObject) error {
		at, err := c.CartCoords(int(rank))
		if err != nil {
			return err
		}
		return putInts("coords", coords, int(room), at)
	})
}

//export abiCartShift
func abiCartShift(c uintptr, dim, disp int32, source, dest uintptr) int32 {
	return onComm("Cart_shift", 0, c, func(c *commObject) error {
		s, d, err := c.CartShift(int(dim), int(disp))
		if err != nil {
			return err
		}
		if err := putInt("rank_source", source, s); err != nil {
			return err
		}
		return putInt("rank_dest", dest, d)
	})
}

//export abiCartSub
func abiCartSub(c, remain, out uintptr) int32 {
	return construct("Cart_sub", c, out, func(c *commObject) (*mpi.Comm, error) {
		n, err := c.CartdimGet()
		if err != nil {
			return nil, err
		}
		keep, err := bools("remain_dims", remain, n)
		if err != nil {
			return nil, err
		}
		return c.CartSub(keep)
	})
}

// graph gives the index and the edges of a graph.
func graph(n int32, index, edges uintptr) (i, e []int, err error) {
	if i, err = ints("index", index, int(n)); err != nil || n == 0 {
		return i, nil, err
	}
	e, err = ints("edges", edges, i[n-1])
	return i, e, err
}

//export abiGraphCreate
func abiGraphCreate(c uintptr, n int32, index, edges uintptr, reorder int32, out uintptr) int32 {
	return construct("Graph_create", c, out, func(c *commObject) (*mpi.Comm, error) {
		i, e, err := graph(n, index, edges)
		if err != nil {
			return nil, err
		}
		return c.GraphCreate(i, e, reorder != 0)
	})
}

//export abiGraphMap
func abiGraphMap(c uintptr, n int32, index, edges, out uintptr) int32 {
	return onComm("Graph_map", 0, c, func(c *commObject) error {
		i, e, err := graph(n, index, edges)
		if err != nil {
			return err
		}
		r, err := c.GraphMap(i, e)
		if err != nil {
			return err
		}
		return putInt("newrank", out, r)
	})
}

//export abiGraphdimsGet
func abiGraphdimsGet(c, nodes, edges uintptr) int32 {
	return onComm("Graphdims_get", 0, c, func(c *commObject) error {
		n, e, err := c.GraphdimsGet()
		if err != nil {
			return err
		}
		if err := putInt("nnodes", nodes, n); err != nil {
			return err
		}
		return putInt("nedges", edges, e)
	})
}

//export abiGraphGet
func abiGraphGet(c uintptr, maxIndex, maxEdges int32, index, edges uintptr) int32 {
	return onComm("Graph_get", 0, c, func(c *commObject) error {
		i, e, err := c.GraphGet()
		if err != nil {
			return err
		}
		if err := putInts("index", index, int(maxIndex), i); err != nil {
			return err
		}
		return putInts("edges", edges, int(maxEdges), e)
	})
}

//export abiGraphNeighborsCount
func abiGraphNeighborsCount(c uintptr, rank int32, out uintptr) int32 {
	return onComm("Graph_neighbors_count", 0, c, func(c *commObject) error {
		n, err := c.GraphNeighborsCount(int(rank))
		if err != nil {
			return err
		}
		return putInt("nneighbors", out, n)
	})
}

//export abiGraphNeighbors
func abiGraphNeighbors(c uintptr, rank, room int32, out uintptr) int32 {
	return onComm("Graph_neighbors", 0, c, func(c *commObject) error {
		n, err := c.GraphNeighbors(int(rank))
		if err != nil {
			return err
		}
		return putInts("neighbors", out, int(room), n)
	})
}

// weights gives those of n edges.
func weights(p uintptr, n int) ([]int, error) {
	switch p {
	case unweighted:
		return mpi.Unweighted, nil
	case weightsEmpty:
		return mpi.WeightsEmpty, nil
	}
	if n == 0 {
		return mpi.WeightsEmpty, nil
	}
	return ints("weights", p, n)
}

//export abiDistGraphCreate
func abiDistGraphCreate(c uintptr, n int32, sources, degrees, dests, ws, info uintptr, reorder int32, out uintptr) int32 {
	return construct("Dist_graph_create", c, out, func(c *commObject) (*mpi.Comm, error) {
		s, err := ints("sources", sources, int(n))
		if err != nil {
			return nil, err
		}
		deg, err := ints("degrees", degrees, int(n))
		if err != nil {
			return nil, err
		}
		edges := 0
		for _, k := range deg {
			edges += max(k, 0)
		}
		d, err := ints("destinations", dests, edges)
		if err != nil {
			return nil, err
		}
		w, err := weights(ws, edges)
		if err != nil {
			return nil, err
		}
		i, err := infoOf(info)
		if err != nil {
			return nil, err
		}
		return c.DistGraphCreate(s, deg, d, w, i, reorder != 0)
	})
}

//export abiDistGraphCreateAdjacent
func abiDistGraphCreateAdjacent(c uintptr, in int32, sources, sws uintptr, out int32, dests, dws, info uintptr, reorder int32, newcomm uintptr) int32 {
	return construct("Dist_graph_create_adjacent", c, newcomm, func(c *commObject) (*mpi.Comm, error) {
		s, err := ints("sources", sources, int(in))
		if err != nil {
			return nil, err
		}
		sw, err := weights(sws, int(in))
		if err != nil {
			return nil, err
		}
		d, err := ints("destinations", dests, int(out))
		if err != nil {
			return nil, err
		}
		dw, err := weights(dws, int(out))
		if err != nil {
			return nil, err
		}
		i, err := infoOf(info)
		if err != nil {
			return nil, err
		}
		return c.DistGraphCreateAdjacent(s, sw, d, dw, i, reorder != 0)
	})
}

//export abiDistGraphNeighborsCount
func abiDistGraphNeighborsCount(c, in, out, weighted uintptr) int32 {
	return onComm("Dist_graph_neighbors_count", 0, c, func(c *commObject) error {
		i, o, w, err := c.DistGraphNeighborsCount()
		if err != nil {
			return err
		}
		if err := putInt("indegree", in, i); err != nil {
			return err
		}
		if err := putInt("outdegree", out, o); err != nil {
			return err
		}
		return putFlag("weighted", weighted, w)
	})
}

//export abiDistGraphNeighbors
func abiDistGraphNeighbors(c uintptr, maxIn int32, sources, sws uintptr, maxOut int32, dests, dws uintptr) int32 {
	return onComm("Dist_graph_neighbors", 0, c, func(c *commObject) error {
		s, sw, d, dw, err := c.DistGraphNeighbors()
		if err != nil {
			return err
		}
		if err := putInts("sources", sources, int(maxIn), s); err != nil {
			return err
		}
		if err := putInts("destinations", dests, int(maxOut), d); err != nil {
			return err
		}
		if sws >= firstAddress {
			if err := putInts("sourceweights", sws, int(maxIn), sw); err != nil {
				return err
			}
		}
		if dws >= firstAddress {
			return putInts("destweights", dws, int(maxOut), dw)
		}
		return nil
	})
}
