//go:build cgo && !386 && !arm

package main

import "C"

import "github.com/openimpi/impi/core/mpi"

//export abiReduce
func abiReduce(sbuf, rbuf uintptr, count int64, t, op uintptr, root int32, c uintptr, which int32) int32 {
	return collect("Reduce", which, c, reduce(sbuf, rbuf, count, t, op, root))
}

//export abiIreduce
func abiIreduce(sbuf, rbuf uintptr, count int64, t, op uintptr, root int32, c, q uintptr, which int32) int32 {
	return start("Ireduce", which, c, q, reduce(sbuf, rbuf, count, t, op, root))
}

//export abiReduceInit
func abiReduceInit(sbuf, rbuf uintptr, count int64, t, op uintptr, root int32, c, info, q uintptr, which int32) int32 {
	return prepare("Reduce_init", which, c, info, q, func(k *keeper) collective {
		return reduce(sbuf, rbuf, count, k.t(t), k.op(op), root)
	})
}

//export abiAllreduce
func abiAllreduce(sbuf, rbuf uintptr, count int64, t, op uintptr, c uintptr, which int32) int32 {
	return collect("Allreduce", which, c, combine(sbuf, rbuf, count, t, op, (*mpi.Comm).Allreduce, (*mpi.Comm).Iallreduce))
}

//export abiIallreduce
func abiIallreduce(sbuf, rbuf uintptr, count int64, t, op uintptr, c, q uintptr, which int32) int32 {
	return start("Iallreduce", which, c, q, combine(sbuf, rbuf, count, t, op, (*mpi.Comm).Allreduce, (*mpi.Comm).Iallreduce))
}

//export abiAllreduceInit
func abiAllreduceInit(sbuf, rbuf uintptr, count int64, t, op uintptr, c, info, q uintptr, which int32) int32 {
	return prepare("Allreduce_init", which, c, info, q, func(k *keeper) collective {
		return combine(sbuf, rbuf, count, k.t(t), k.op(op), (*mpi.Comm).Allreduce, (*mpi.Comm).Iallreduce)
	})
}

//export abiScan
func abiScan(sbuf, rbuf uintptr, count int64, t, op uintptr, c uintptr, which int32) int32 {
	return collect("Scan", which, c, combine(sbuf, rbuf, count, t, op, (*mpi.Comm).Scan, (*mpi.Comm).Iscan))
}

//export abiIscan
func abiIscan(sbuf, rbuf uintptr, count int64, t, op uintptr, c, q uintptr, which int32) int32 {
	return start("Iscan", which, c, q, combine(sbuf, rbuf, count, t, op, (*mpi.Comm).Scan, (*mpi.Comm).Iscan))
}

//export abiScanInit
func abiScanInit(sbuf, rbuf uintptr, count int64, t, op uintptr, c, info, q uintptr, which int32) int32 {
	return prepare("Scan_init", which, c, info, q, func(k *keeper) collective {
		return combine(sbuf, rbuf, count, k.t(t), k.op(op), (*mpi.Comm).Scan, (*mpi.Comm).Iscan)
	})
}

//export abiExscan
func abiExscan(sbuf, rbuf uintptr, count int64, t, op uintptr, c uintptr, which int32) int32 {
	return collect("Exscan", which, c, combine(sbuf, rbuf, count, t, op, (*mpi.Comm).Exscan, (*mpi.Comm).Iexscan))
}

//export abiIexscan
func abiIexscan(sbuf, rbuf uintptr, count int64, t, op uintptr, c, q uintptr, which int32) int32 {
	return start("Iexscan", which, c, q, combine(sbuf, rbuf, count, t, op, (*mpi.Comm).Exscan, (*mpi.Comm).Iexscan))
}

//export abiExscanInit
func abiExscanInit(sbuf, rbuf uintptr, count int64, t, op uintptr, c, info, q uintptr, which int32) int32 {
	return prepare("Exscan_init", which, c, info, q, func(k *keeper) collective {
		return combine(sbuf, rbuf, count, k.t(t), k.op(op), (*mpi.Comm).Exscan, (*mpi.Comm).Iexscan)
	})
}

//export abiReduceScatterBlock
func abiReduceScatterBlock(sbuf, rbuf uintptr, count int64, t, op uintptr, c uintptr, which int32) int32 {
	return collect("Reduce_scatter_block", which, c, reduceScatterBlock(sbuf, rbuf, count, t, op))
}

//export abiIreduceScatterBlock
func abiIreduceScatterBlock(sbuf, rbuf uintptr, count int64, t, op uintptr, c, q uintptr, which int32) int32 {
	return start("Ireduce_scatter_block", which, c, q, reduceScatterBlock(sbuf, rbuf, count, t, op))
}

//export abiReduceScatterBlockInit
func abiReduceScatterBlockInit(sbuf, rbuf uintptr, count int64, t, op uintptr, c, info, q uintptr, which int32) int32 {
	return prepare("Reduce_scatter_block_init", which, c, info, q, func(k *keeper) collective {
		return reduceScatterBlock(sbuf, rbuf, count, k.t(t), k.op(op))
	})
}

//export abiReduceScatter
func abiReduceScatter(sbuf, rbuf, counts, t, op uintptr, c uintptr, which int32) int32 {
	return collect("Reduce_scatter", which, c, reduceScatter(sbuf, rbuf, counts, t, op, which))
}

//export abiIreduceScatter
func abiIreduceScatter(sbuf, rbuf, counts, t, op uintptr, c, q uintptr, which int32) int32 {
	return start("Ireduce_scatter", which, c, q, reduceScatter(sbuf, rbuf, counts, t, op, which))
}

//export abiReduceScatterInit
func abiReduceScatterInit(sbuf, rbuf, counts, t, op uintptr, c, info, q uintptr, which int32) int32 {
	return prepare("Reduce_scatter_init", which, c, info, q, func(k *keeper) collective {
		return reduceScatter(sbuf, rbuf, k.counts(counts, k.c.Size(), which), k.t(t), k.op(op), which)
	})
}
