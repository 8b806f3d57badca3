//go:build cgo && !386 && !arm

package main

import "C"

//export abiNeighborAllgather
func abiNeighborAllgather(sbuf uintptr, scount int64, stype uintptr, rbuf uintptr, rcount int64, rtype uintptr, c uintptr, which int32) int32 {
	return collect("Neighbor_allgather", which, c, neighborExchange(sbuf, scount, stype, rbuf, rcount, rtype, false))
}

//export abiIneighborAllgather
func abiIneighborAllgather(sbuf uintptr, scount int64, stype uintptr, rbuf uintptr, rcount int64, rtype uintptr, c, q uintptr, which int32) int32 {
	return start("Ineighbor_allgather", which, c, q, neighborExchange(sbuf, scount, stype, rbuf, rcount, rtype, false))
}

//export abiNeighborAllgatherInit
func abiNeighborAllgatherInit(sbuf uintptr, scount int64, stype uintptr, rbuf uintptr, rcount int64, rtype uintptr, c, info, q uintptr, which int32) int32 {
	return prepare("Neighbor_allgather_init", which, c, info, q, func(k *keeper) collective {
		return neighborExchange(sbuf, scount, k.t(stype), rbuf, rcount, k.t(rtype), false)
	})
}

//export abiNeighborAlltoall
func abiNeighborAlltoall(sbuf uintptr, scount int64, stype uintptr, rbuf uintptr, rcount int64, rtype uintptr, c uintptr, which int32) int32 {
	return collect("Neighbor_alltoall", which, c, neighborExchange(sbuf, scount, stype, rbuf, rcount, rtype, true))
}

//export abiIneighborAlltoall
func abiIneighborAlltoall(sbuf uintptr, scount int64, stype uintptr, rbuf uintptr, rcount int64, rtype uintptr, c, q uintptr, which int32) int32 {
	return start("Ineighbor_alltoall", which, c, q, neighborExchange(sbuf, scount, stype, rbuf, rcount, rtype, true))
}

//export abiNeighborAlltoallInit
func abiNeighborAlltoallInit(sbuf uintptr, scount int64, stype uintptr, rbuf uintptr, rcount int64, rtype uintptr, c, info, q uintptr, which int32) int32 {
	return prepare("Neighbor_alltoall_init", which, c, info, q, func(k *keeper) collective {
		return neighborExchange(sbuf, scount, k.t(stype), rbuf, rcount, k.t(rtype), true)
	})
}

//export abiNeighborAllgatherv
func abiNeighborAllgatherv(sbuf uintptr, scount int64, stype uintptr, rbuf, rcounts, rdispls, rtype uintptr, c uintptr, which int32) int32 {
	return collect("Neighbor_allgatherv", which, c, neighborAllgatherv(sbuf, scount, stype, blocks{rbuf, rcounts, rdispls, rtype, which}))
}

//export abiIneighborAllgatherv
func abiIneighborAllgatherv(sbuf uintptr, scount int64, stype uintptr, rbuf, rcounts, rdispls, rtype uintptr, c, q uintptr, which int32) int32 {
	return start("Ineighbor_allgatherv", which, c, q, neighborAllgatherv(sbuf, scount, stype, blocks{rbuf, rcounts, rdispls, rtype, which}))
}

//export abiNeighborAllgathervInit
func abiNeighborAllgathervInit(sbuf uintptr, scount int64, stype uintptr, rbuf, rcounts, rdispls, rtype uintptr, c, info, q uintptr, which int32) int32 {
	return prepare("Neighbor_allgatherv_init", which, c, info, q, func(k *keeper) collective {
		in, _ := k.degrees()
		return neighborAllgatherv(sbuf, scount, k.t(stype), k.blocks(blocks{rbuf, rcounts, rdispls, rtype, which}, in))
	})
}

//export abiNeighborAlltoallv
func abiNeighborAlltoallv(sbuf, scounts, sdispls, stype uintptr, rbuf, rcounts, rdispls, rtype uintptr, c uintptr, which int32) int32 {
	return collect("Neighbor_alltoallv", which, c, neighborAlltoallv(blocks{sbuf, scounts, sdispls, stype, which}, blocks{rbuf, rcounts, rdispls, rtype, which}))
}

//export abiIneighborAlltoallv
func abiIneighborAlltoallv(sbuf, scounts, sdispls, stype uintptr, rbuf, rcounts, rdispls, rtype uintptr, c, q uintptr, which int32) int32 {
	return start("Ineighbor_alltoallv", which, c, q, neighborAlltoallv(blocks{sbuf, scounts, sdispls, stype, which}, blocks{rbuf, rcounts, rdispls, rtype, which}))
}

//export abiNeighborAlltoallvInit
func abiNeighborAlltoallvInit(sbuf, scounts, sdispls, stype uintptr, rbuf, rcounts, rdispls, rtype uintptr, c, info, q uintptr, which int32) int32 {
	return prepare("Neighbor_alltoallv_init", which, c, info, q, func(k *keeper) collective {
		in, out := k.degrees()
		return neighborAlltoallv(k.blocks(blocks{sbuf, scounts, sdispls, stype, which}, out), k.blocks(blocks{rbuf, rcounts, rdispls, rtype, which}, in))
	})
}

//export abiNeighborAlltoallw
func abiNeighborAlltoallw(sbuf, scounts, sdispls, stypes uintptr, rbuf, rcounts, rdispls, rtypes uintptr, c uintptr, which int32) int32 {
	return collect("Neighbor_alltoallw", which, c, neighborAlltoallw(blocks{sbuf, scounts, sdispls, stypes, which}, blocks{rbuf, rcounts, rdispls, rtypes, which}))
}

//export abiIneighborAlltoallw
func abiIneighborAlltoallw(sbuf, scounts, sdispls, stypes uintptr, rbuf, rcounts, rdispls, rtypes uintptr, c, q uintptr, which int32) int32 {
	return start("Ineighbor_alltoallw", which, c, q, neighborAlltoallw(blocks{sbuf, scounts, sdispls, stypes, which}, blocks{rbuf, rcounts, rdispls, rtypes, which}))
}

//export abiNeighborAlltoallwInit
func abiNeighborAlltoallwInit(sbuf, scounts, sdispls, stypes uintptr, rbuf, rcounts, rdispls, rtypes uintptr, c, info, q uintptr, which int32) int32 {
	return prepare("Neighbor_alltoallw_init", which, c, info, q, func(k *keeper) collective {
		in, out := k.degrees()
		return neighborAlltoallw(k.pieces(blocks{sbuf, scounts, sdispls, stypes, which}, out, true), k.pieces(blocks{rbuf, rcounts, rdispls, rtypes, which}, in, true))
	})
}
