// What cgo makes for the C code of cmd/libmpi, where it is compiled without Go: each call of Go is
// counted.

#ifndef ALONE_CGO_EXPORT_H
#define ALONE_CGO_EXPORT_H

#include <stdint.h>

typedef int32_t GoInt32;
typedef uintptr_t GoUintptr;

int to_go(const char *name); // what Go's function of that name returns

#define GO(name) \
	__attribute__((unused)) static int name(GoUintptr first, ...) { return (void)first, to_go(#name); }
#define GO_OF_NOTHING(name) \
	__attribute__((unused)) static void name(void) { to_go(#name); }

GO(abiAccumulate)
GO(abiAllgather)
GO(abiAllreduce)
GO(abiAlltoall)
GO(abiBarrier)
GO(abiBcast)
GO(abiCompareAndSwap)
GO(abiFetchAndOp)
GO(abiGather)
GO(abiGet)
GO(abiGetAccumulate)
GO(abiIallgather)
GO(abiIallreduce)
GO(abiIalltoall)
GO(abiIbarrier)
GO(abiIbcast)
GO(abiIgather)
GO(abiIrecv)
GO(abiIreduce)
GO(abiIscatter)
GO(abiIsend)
GO(abiPut)
GO(abiRecv)
GO(abiReduce)
GO(abiReduceScatterBlock)
GO(abiScatter)
GO(abiSend)
GO(abiSendrecv)
GO(abiTest)
GO(abiWait)
GO(abiWaitall)
GO(abiWinFence)
GO(abiWinFlush)
GO(abiWinFlushAll)
GO(abiWinFlushLocal)
GO(abiWinFlushLocalAll)
GO(abiWinSync)
GO(fastPathReturned)
GO(fastPathRing)
GO(fastPathWake)
GO_OF_NOTHING(fastPathHear)
GO_OF_NOTHING(fastPathReview)

#endif
