#include "textflag.h"

// func Claim(line unsafe.Pointer)
TEXT ·Claim(SB), NOSPLIT, $0-8
	MOVQ line+0(FP), AX
	BYTE $0x0f; BYTE $0x0d; BYTE $0x08 // PREFETCHW (AX), which the assembler does not know
	RET

// func Fetch(line unsafe.Pointer)
TEXT ·Fetch(SB), NOSPLIT, $0-8
	MOVQ       line+0(FP), AX
	PREFETCHT0 (AX)
	RET
