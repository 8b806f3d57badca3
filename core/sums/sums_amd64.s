#include "textflag.h"

// Sums of n elements, in and inout, into inout: 128 bytes at a time where the processor has vectors of 32
// bytes, then 64 bytes, then one element at a time.

// VECTORS does the first of that, for 1<<SHIFT elements at a time.
#define VECTORS(SHIFT, ADD) \
	MOVQ CX, DX;                \
	SHRQ $SHIFT, DX;            \
	JZ   narrow;                \
	CMPB ·vectors(SB), $0;      \
	JEQ  narrow;                \
	ANDQ $((1<<SHIFT)-1), CX;   \
vector:                         \
	VMOVUPD (SI), Y0;           \
	VMOVUPD 32(SI), Y1;         \
	VMOVUPD 64(SI), Y2;         \
	VMOVUPD 96(SI), Y3;         \
	ADD     (DI), Y0, Y0;       \
	ADD     32(DI), Y1, Y1;     \
	ADD     64(DI), Y2, Y2;     \
	ADD     96(DI), Y3, Y3;     \
	VMOVUPD Y0, (DI);           \
	VMOVUPD Y1, 32(DI);         \
	VMOVUPD Y2, 64(DI);         \
	VMOVUPD Y3, 96(DI);         \
	ADDQ    $128, SI;           \
	ADDQ    $128, DI;           \
	DECQ    DX;                 \
	JNZ     vector;             \
	VZEROUPPER;                 \
narrow:                         \
	MOVQ CX, DX

// func avx2() bool
TEXT ·avx2(SB), NOSPLIT, $0-1
	MOVB $0, ret+0(FP)
	MOVL $0, AX
	CPUID
	CMPL AX, $7 // the highest leaf
	JLT  no
	MOVL $1, AX
	MOVL $0, CX
	CPUID
	ANDL $(1<<27 | 1<<28), CX // the system uses XSAVE; AVX
	CMPL CX, $(1<<27 | 1<<28)
	JNE  no
	MOVL $0, CX
	XGETBV
	ANDL $6, AX // and it saves these registers
	CMPL AX, $6
	JNE  no
	MOVL $7, AX
	MOVL $0, CX
	CPUID
	ANDL $(1<<5), BX // AVX2
	JZ   no
	MOVB $1, ret+0(FP)

no:
	RET

// func float64s(in, inout unsafe.Pointer, n int)
TEXT ·float64s(SB), NOSPLIT, $0-24
	MOVQ in+0(FP), SI
	MOVQ inout+8(FP), DI
	MOVQ n+16(FP), CX
	VECTORS(4, VADDPD)
	SHRQ $3, DX
	JZ   rest

wide:
	MOVUPD (SI), X0
	MOVUPD 16(SI), X1
	MOVUPD 32(SI), X2
	MOVUPD 48(SI), X3
	MOVUPD (DI), X4
	MOVUPD 16(DI), X5
	MOVUPD 32(DI), X6
	MOVUPD 48(DI), X7
	ADDPD  X4, X0
	ADDPD  X5, X1
	ADDPD  X6, X2
	ADDPD  X7, X3
	MOVUPD X0, (DI)
	MOVUPD X1, 16(DI)
	MOVUPD X2, 32(DI)
	MOVUPD X3, 48(DI)
	ADDQ   $64, SI
	ADDQ   $64, DI
	DECQ   DX
	JNZ    wide

rest:
	ANDQ $7, CX
	JZ   done

one:
	MOVSD (SI), X0
	ADDSD (DI), X0
	MOVSD X0, (DI)
	ADDQ  $8, SI
	ADDQ  $8, DI
	DECQ  CX
	JNZ   one

done:
	RET

// func float32s(in, inout unsafe.Pointer, n int)
TEXT ·float32s(SB), NOSPLIT, $0-24
	MOVQ in+0(FP), SI
	MOVQ inout+8(FP), DI
	MOVQ n+16(FP), CX
	VECTORS(5, VADDPS)
	SHRQ $4, DX
	JZ   rest

wide:
	MOVUPS (SI), X0
	MOVUPS 16(SI), X1
	MOVUPS 32(SI), X2
	MOVUPS 48(SI), X3
	MOVUPS (DI), X4
	MOVUPS 16(DI), X5
	MOVUPS 32(DI), X6
	MOVUPS 48(DI), X7
	ADDPS  X4, X0
	ADDPS  X5, X1
	ADDPS  X6, X2
	ADDPS  X7, X3
	MOVUPS X0, (DI)
	MOVUPS X1, 16(DI)
	MOVUPS X2, 32(DI)
	MOVUPS X3, 48(DI)
	ADDQ   $64, SI
	ADDQ   $64, DI
	DECQ   DX
	JNZ    wide

rest:
	ANDQ $15, CX
	JZ   done

one:
	MOVSS (SI), X0
	ADDSS (DI), X0
	MOVSS X0, (DI)
	ADDQ  $4, SI
	ADDQ  $4, DI
	DECQ  CX
	JNZ   one

done:
	RET

// func int64s(in, inout unsafe.Pointer, n int)
TEXT ·int64s(SB), NOSPLIT, $0-24
	MOVQ in+0(FP), SI
	MOVQ inout+8(FP), DI
	MOVQ n+16(FP), CX
	VECTORS(4, VPADDQ)
	SHRQ $3, DX
	JZ   rest

wide:
	MOVOU (SI), X0
	MOVOU 16(SI), X1
	MOVOU 32(SI), X2
	MOVOU 48(SI), X3
	MOVOU (DI), X4
	MOVOU 16(DI), X5
	MOVOU 32(DI), X6
	MOVOU 48(DI), X7
	PADDQ X4, X0
	PADDQ X5, X1
	PADDQ X6, X2
	PADDQ X7, X3
	MOVOU X0, (DI)
	MOVOU X1, 16(DI)
	MOVOU X2, 32(DI)
	MOVOU X3, 48(DI)
	ADDQ  $64, SI
	ADDQ  $64, DI
	DECQ  DX
	JNZ   wide

rest:
	ANDQ $7, CX
	JZ   done

one:
	MOVQ (SI), AX
	ADDQ AX, (DI)
	ADDQ $8, SI
	ADDQ $8, DI
	DECQ CX
	JNZ  one

done:
	RET

// func int32s(in, inout unsafe.Pointer, n int)
TEXT ·int32s(SB), NOSPLIT, $0-24
	MOVQ in+0(FP), SI
	MOVQ inout+8(FP), DI
	MOVQ n+16(FP), CX
	VECTORS(5, VPADDD)
	SHRQ $4, DX
	JZ   rest

wide:
	MOVOU (SI), X0
	MOVOU 16(SI), X1
	MOVOU 32(SI), X2
	MOVOU 48(SI), X3
	MOVOU (DI), X4
	MOVOU 16(DI), X5
	MOVOU 32(DI), X6
	MOVOU 48(DI), X7
	PADDL X4, X0
	PADDL X5, X1
	PADDL X6, X2
	PADDL X7, X3
	MOVOU X0, (DI)
	MOVOU X1, 16(DI)
	MOVOU X2, 32(DI)
	MOVOU X3, 48(DI)
	ADDQ  $64, SI
	ADDQ  $64, DI
	DECQ  DX
	JNZ   wide

rest:
	ANDQ $15, CX
	JZ   done

one:
	MOVL (SI), AX
	ADDL AX, (DI)
	ADDQ $4, SI
	ADDQ $4, DI
	DECQ CX
	JNZ  one

done:
	RET
