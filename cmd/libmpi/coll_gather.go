//go:build cgo && !386 && !arm

package main

import "C"

//export abiGather
func abiGather(sbuf uintptr, scount int64, stype uintptr, rbuf uintptr, rcount int64, rtype uintptr, root int32, c uintptr, which int32) int32 {
	return collect("Gather", which, c, gather(sbuf, scount, stype, rbuf, rcount, rtype, root))
}

//export abiIgather
func abiIgather(sbuf uintptr, scount int64, stype uintptr, rbuf uintptr, rcount int64, rtype uintptr, root int32, c, q uintptr, which int32) int32 {
	return start("Igather", which, c, q, gather(sbuf, scount, stype, rbuf, rcount, rtype, root))
}

//export abiGatherInit
func abiGatherInit(sbuf uintptr, scount int64, stype uintptr, rbuf uintptr, rcount int64, rtype uintptr, root int32, c, info, q uintptr, which int32) int32 {
	return prepare("Gather_init", which, c, info, q, func(k *keeper) collective {
		return gather(sbuf, scount, k.t(stype), rbuf, rcount, k.t(rtype), root)
	})
}

//export abiScatter
func abiScatter(sbuf uintptr, scount int64, stype uintptr, rbuf uintptr, rcount int64, rtype uintptr, root int32, c uintptr, which int32) int32 {
	return collect("Scatter", which, c, scatter(sbuf, scount, stype, rbuf, rcount, rtype, root))
}

//export abiIscatter
func abiIscatter(sbuf uintptr, scount int64, stype uintptr, rbuf uintptr, rcount int64, rtype uintptr, root int32, c, q uintptr, which int32) int32 {
	return start("Iscatter", which, c, q, scatter(sbuf, scount, stype, rbuf, rcount, rtype, root))
}

//export abiScatterInit
func abiScatterInit(sbuf uintptr, scount int64, stype uintptr, rbuf uintptr, rcount int64, rtype uintptr, root int32, c, info, q uintptr, which int32) int32 {
	return prepare("Scatter_init", which, c, info, q, func(k *keeper) collective {
		return scatter(sbuf, scount, k.t(stype), rbuf, rcount, k.t(rtype), root)
	})
}

//export abiGatherv
func abiGatherv(sbuf uintptr, scount int64, stype uintptr, rbuf, rcounts, rdispls, rtype uintptr, root int32, c uintptr, which int32) int32 {
	return collect("Gatherv", which, c, gatherv(sbuf, scount, stype, blocks{rbuf, rcounts, rdispls, rtype, which}, root))
}

//export abiIgatherv
func abiIgatherv(sbuf uintptr, scount int64, stype uintptr, rbuf, rcounts, rdispls, rtype uintptr, root int32, c, q uintptr, which int32) int32 {
	return start("Igatherv", which, c, q, gatherv(sbuf, scount, stype, blocks{rbuf, rcounts, rdispls, rtype, which}, root))
}

//export abiGathervInit
func abiGathervInit(sbuf uintptr, scount int64, stype uintptr, rbuf, rcounts, rdispls, rtype uintptr, root int32, c, info, q uintptr, which int32) int32 {
	return prepare("Gatherv_init", which, c, info, q, func(k *keeper) collective {
		return gatherv(sbuf, scount, k.t(stype), k.rooted(blocks{rbuf, rcounts, rdispls, rtype, which}, root), root)
	})
}

//export abiScatterv
func abiScatterv(sbuf, scounts, sdispls, stype uintptr, rbuf uintptr, rcount int64, rtype uintptr, root int32, c uintptr, which int32) int32 {
	return collect("Scatterv", which, c, scatterv(blocks{sbuf, scounts, sdispls, stype, which}, rbuf, rcount, rtype, root))
}

//export abiIscatterv
func abiIscatterv(sbuf, scounts, sdispls, stype uintptr, rbuf uintptr, rcount int64, rtype uintptr, root int32, c, q uintptr, which int32) int32 {
	return start("Iscatterv", which, c, q, scatterv(blocks{sbuf, scounts, sdispls, stype, which}, rbuf, rcount, rtype, root))
}

//export abiScattervInit
func abiScattervInit(sbuf, scounts, sdispls, stype uintptr, rbuf uintptr, rcount int64, rtype uintptr, root int32, c, info, q uintptr, which int32) int32 {
	return prepare("Scatterv_init", which, c, info, q, func(k *keeper) collective {
		return scatterv(k.rooted(blocks{sbuf, scounts, sdispls, stype, which}, root), rbuf, rcount, k.t(rtype), root)
	})
}
