//go:build cgo && !386 && !arm

package main

import "C"

import "github.com/openimpi/impi/core/mpi"

//export abiAllgather
func abiAllgather(sbuf uintptr, scount int64, stype uintptr, rbuf uintptr, rcount int64, rtype uintptr, c uintptr, which int32) int32 {
	return collect("Allgather", which, c, exchange(sbuf, scount, stype, rbuf, rcount, rtype, false, (*mpi.Comm).Allgather, (*mpi.Comm).Iallgather))
}

//export abiIallgather
func abiIallgather(sbuf uintptr, scount int64, stype uintptr, rbuf uintptr, rcount int64, rtype uintptr, c, q uintptr, which int32) int32 {
	return start("Iallgather", which, c, q, exchange(sbuf, scount, stype, rbuf, rcount, rtype, false, (*mpi.Comm).Allgather, (*mpi.Comm).Iallgather))
}

//export abiAllgatherInit
func abiAllgatherInit(sbuf uintptr, scount int64, stype uintptr, rbuf uintptr, rcount int64, rtype uintptr, c, info, q uintptr, which int32) int32 {
	return prepare("Allgather_init", which, c, info, q, func(k *keeper) collective {
		return exchange(sbuf, scount, k.t(stype), rbuf, rcount, k.t(rtype), false, (*mpi.Comm).Allgather, (*mpi.Comm).Iallgather)
	})
}

//export abiAlltoall
func abiAlltoall(sbuf uintptr, scount int64, stype uintptr, rbuf uintptr, rcount int64, rtype uintptr, c uintptr, which int32) int32 {
	return collect("Alltoall", which, c, exchange(sbuf, scount, stype, rbuf, rcount, rtype, true, (*mpi.Comm).Alltoall, (*mpi.Comm).Ialltoall))
}

//export abiIalltoall
func abiIalltoall(sbuf uintptr, scount int64, stype uintptr, rbuf uintptr, rcount int64, rtype uintptr, c, q uintptr, which int32) int32 {
	return start("Ialltoall", which, c, q, exchange(sbuf, scount, stype, rbuf, rcount, rtype, true, (*mpi.Comm).Alltoall, (*mpi.Comm).Ialltoall))
}

//export abiAlltoallInit
func abiAlltoallInit(sbuf uintptr, scount int64, stype uintptr, rbuf uintptr, rcount int64, rtype uintptr, c, info, q uintptr, which int32) int32 {
	return prepare("Alltoall_init", which, c, info, q, func(k *keeper) collective {
		return exchange(sbuf, scount, k.t(stype), rbuf, rcount, k.t(rtype), true, (*mpi.Comm).Alltoall, (*mpi.Comm).Ialltoall)
	})
}

//export abiAllgatherv
func abiAllgatherv(sbuf uintptr, scount int64, stype uintptr, rbuf, rcounts, rdispls, rtype uintptr, c uintptr, which int32) int32 {
	return collect("Allgatherv", which, c, allgatherv(sbuf, scount, stype, blocks{rbuf, rcounts, rdispls, rtype, which}))
}

//export abiIallgatherv
func abiIallgatherv(sbuf uintptr, scount int64, stype uintptr, rbuf, rcounts, rdispls, rtype uintptr, c, q uintptr, which int32) int32 {
	return start("Iallgatherv", which, c, q, allgatherv(sbuf, scount, stype, blocks{rbuf, rcounts, rdispls, rtype, which}))
}

//export abiAllgathervInit
func abiAllgathervInit(sbuf uintptr, scount int64, stype uintptr, rbuf, rcounts, rdispls, rtype uintptr, c, info, q uintptr, which int32) int32 {
	return prepare("Allgatherv_init", which, c, info, q, func(k *keeper) collective {
		return allgatherv(sbuf, scount, k.t(stype), k.blocks(blocks{rbuf, rcounts, rdispls, rtype, which}, k.c.partners()))
	})
}

//export abiAlltoallv
func abiAlltoallv(sbuf, scounts, sdispls, stype uintptr, rbuf, rcounts, rdispls, rtype uintptr, c uintptr, which int32) int32 {
	return collect("Alltoallv", which, c, alltoallv(blocks{sbuf, scounts, sdispls, stype, which}, blocks{rbuf, rcounts, rdispls, rtype, which}))
}

//export abiIalltoallv
func abiIalltoallv(sbuf, scounts, sdispls, stype uintptr, rbuf, rcounts, rdispls, rtype uintptr, c, q uintptr, which int32) int32 {
	return start("Ialltoallv", which, c, q, alltoallv(blocks{sbuf, scounts, sdispls, stype, which}, blocks{rbuf, rcounts, rdispls, rtype, which}))
}

//export abiAlltoallvInit
func abiAlltoallvInit(sbuf, scounts, sdispls, stype uintptr, rbuf, rcounts, rdispls, rtype uintptr, c, info, q uintptr, which int32) int32 {
	return prepare("Alltoallv_init", which, c, info, q, func(k *keeper) collective {
		return alltoallv(k.blocks(blocks{sbuf, scounts, sdispls, stype, which}, k.c.partners()), k.blocks(blocks{rbuf, rcounts, rdispls, rtype, which}, k.c.partners()))
	})
}

//export abiAlltoallw
func abiAlltoallw(sbuf, scounts, sdispls, stypes uintptr, rbuf, rcounts, rdispls, rtypes uintptr, c uintptr, which int32) int32 {
	return collect("Alltoallw", which, c, alltoallw(blocks{sbuf, scounts, sdispls, stypes, which}, blocks{rbuf, rcounts, rdispls, rtypes, which}))
}

//export abiIalltoallw
func abiIalltoallw(sbuf, scounts, sdispls, stypes uintptr, rbuf, rcounts, rdispls, rtypes uintptr, c, q uintptr, which int32) int32 {
	return start("Ialltoallw", which, c, q, alltoallw(blocks{sbuf, scounts, sdispls, stypes, which}, blocks{rbuf, rcounts, rdispls, rtypes, which}))
}

//export abiAlltoallwInit
func abiAlltoallwInit(sbuf, scounts, sdispls, stypes uintptr, rbuf, rcounts, rdispls, rtypes uintptr, c, info, q uintptr, which int32) int32 {
	return prepare("Alltoallw_init", which, c, info, q, func(k *keeper) collective {
		return alltoallw(k.pieces(blocks{sbuf, scounts, sdispls, stypes, which}, k.c.partners(), false), k.pieces(blocks{rbuf, rcounts, rdispls, rtypes, which}, k.c.partners(), false))
	})
}
