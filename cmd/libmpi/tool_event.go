//go:build cgo && !386 && !arm

package main

import "C"

// There are no events and no sources of them: no index has one, no name, and no
// registration or instance was ever given.

func noEvent(code int32) int32 { return tooled(func() int32 { return code }) }

//export abiTSourceGetNum
func abiTSourceGetNum(out uintptr) int32 { return toolNumber(out, 0) }

//export abiTSourceGetInfo
func abiTSourceGetInfo(index int32, name, nameLen, desc, descLen, order, ticks, most, info uintptr) int32 {
	return noEvent(toolInvalidIndex)
}

//export abiTSourceGetTimestamp
func abiTSourceGetTimestamp(index int32, out uintptr) int32 { return noEvent(toolInvalidIndex) }

//export abiTEventGetNum
func abiTEventGetNum(out uintptr) int32 { return toolNumber(out, 0) }

//export abiTEventGetIndex
func abiTEventGetIndex(name, out uintptr) int32 { return toolIndex(name, out, 0, nil) }

//export abiTEventGetInfo
func abiTEventGetInfo(index int32, name, nameLen, verbosity, types, displs, n, enumtype, info, desc, descLen, bind uintptr) int32 {
	return noEvent(toolInvalidIndex)
}

//export abiTEventHandleAlloc
func abiTEventHandleAlloc(index int32, object, info, out uintptr) int32 {
	return noEvent(toolInvalidIndex)
}

//export abiTEventHandleSetInfo
func abiTEventHandleSetInfo(h, info uintptr) int32 { return noEvent(toolInvalidHandle) }

//export abiTEventHandleGetInfo
func abiTEventHandleGetInfo(h, out uintptr) int32 { return noEvent(toolInvalidHandle) }

//export abiTEventHandleFree
func abiTEventHandleFree(h, data, free uintptr) int32 { return noEvent(toolInvalidHandle) }

//export abiTEventRegisterCallback
func abiTEventRegisterCallback(h uintptr, safety int32, info, data, fn uintptr) int32 {
	return noEvent(toolInvalidHandle)
}

//export abiTEventCallbackSetInfo
func abiTEventCallbackSetInfo(h uintptr, safety int32, info uintptr) int32 {
	return noEvent(toolInvalidHandle)
}

//export abiTEventCallbackGetInfo
func abiTEventCallbackGetInfo(h uintptr, safety int32, out uintptr) int32 {
	return noEvent(toolInvalidHandle)
}

//export abiTEventSetDroppedHandler
func abiTEventSetDroppedHandler(h, fn uintptr) int32 { return noEvent(toolInvalidHandle) }

//export abiTEventRead
func abiTEventRead(h uintptr, index int32, buf uintptr) int32 { return noEvent(toolInvalidHandle) }

//export abiTEventCopy
func abiTEventCopy(h, buf uintptr) int32 { return noEvent(toolInvalidHandle) }

//export abiTEventGetTimestamp
func abiTEventGetTimestamp(h, out uintptr) int32 { return noEvent(toolInvalidHandle) }

//export abiTEventGetSource
func abiTEventGetSource(h, out uintptr) int32 { return noEvent(toolInvalidHandle) }
