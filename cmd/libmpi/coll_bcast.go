//go:build cgo && !386 && !arm

package main

import "C"

//export abiBcast
func abiBcast(buf uintptr, count int64, t uintptr, root int32, c uintptr, which int32) int32 {
	return collect("Bcast", which, c, bcast(buf, count, t, root))
}

//export abiIbcast
func abiIbcast(buf uintptr, count int64, t uintptr, root int32, c, q uintptr, which int32) int32 {
	return start("Ibcast", which, c, q, bcast(buf, count, t, root))
}

//export abiBcastInit
func abiBcastInit(buf uintptr, count int64, t uintptr, root int32, c, info, q uintptr, which int32) int32 {
	return prepare("Bcast_init", which, c, info, q, func(k *keeper) collective {
		return bcast(buf, count, k.t(t), root)
	})
}
