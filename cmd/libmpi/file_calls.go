//go:build cgo && !386 && !arm

package main

import "C"

//export abiFileRead
func abiFileRead(h, buf uintptr, count int64, t, status uintptr, which int32) int32 {
	return moveOn("File_read", which, h, transfer{buf, count, t}, false, storing(status))
}

//export abiFileIread
func abiFileIread(h, buf uintptr, count int64, t, q uintptr, which int32) int32 {
	return moveOn("File_iread", which, h, transfer{buf, count, t}, false, requesting(q))
}

//export abiFileReadAll
func abiFileReadAll(h, buf uintptr, count int64, t, status uintptr, which int32) int32 {
	return moveOn("File_read_all", which, h, transfer{buf, count, t}, false, storing(status))
}

//export abiFileIreadAll
func abiFileIreadAll(h, buf uintptr, count int64, t, q uintptr, which int32) int32 {
	return moveOn("File_iread_all", which, h, transfer{buf, count, t}, false, requesting(q))
}

//export abiFileReadAllBegin
func abiFileReadAllBegin(h, buf uintptr, count int64, t uintptr, which int32) int32 {
	return moveOn("File_read_all_begin", which, h, transfer{buf, count, t}, false, splitting)
}

//export abiFileReadAllEnd
func abiFileReadAllEnd(h, buf, status uintptr) int32 { return endSplit("File_read_all_end", h, status) }

//export abiFileReadAt
func abiFileReadAt(h uintptr, offset int64, buf uintptr, count int64, t, status uintptr, which int32) int32 {
	return moveAt("File_read_at", which, h, offset, transfer{buf, count, t}, false, storing(status))
}

//export abiFileIreadAt
func abiFileIreadAt(h uintptr, offset int64, buf uintptr, count int64, t, q uintptr, which int32) int32 {
	return moveAt("File_iread_at", which, h, offset, transfer{buf, count, t}, false, requesting(q))
}

//export abiFileReadAtAll
func abiFileReadAtAll(h uintptr, offset int64, buf uintptr, count int64, t, status uintptr, which int32) int32 {
	return moveAt("File_read_at_all", which, h, offset, transfer{buf, count, t}, false, storing(status))
}

//export abiFileIreadAtAll
func abiFileIreadAtAll(h uintptr, offset int64, buf uintptr, count int64, t, q uintptr, which int32) int32 {
	return moveAt("File_iread_at_all", which, h, offset, transfer{buf, count, t}, false, requesting(q))
}

//export abiFileReadAtAllBegin
func abiFileReadAtAllBegin(h uintptr, offset int64, buf uintptr, count int64, t uintptr, which int32) int32 {
	return moveAt("File_read_at_all_begin", which, h, offset, transfer{buf, count, t}, false, splitting)
}

//export abiFileReadAtAllEnd
func abiFileReadAtAllEnd(h, buf, status uintptr) int32 {
	return endSplit("File_read_at_all_end", h, status)
}

//export abiFileWrite
func abiFileWrite(h, buf uintptr, count int64, t, status uintptr, which int32) int32 {
	return moveOn("File_write", which, h, transfer{buf, count, t}, true, storing(status))
}

//export abiFileIwrite
func abiFileIwrite(h, buf uintptr, count int64, t, q uintptr, which int32) int32 {
	return moveOn("File_iwrite", which, h, transfer{buf, count, t}, true, requesting(q))
}

//export abiFileWriteAll
func abiFileWriteAll(h, buf uintptr, count int64, t, status uintptr, which int32) int32 {
	return moveOn("File_write_all", which, h, transfer{buf, count, t}, true, storing(status))
}

//export abiFileIwriteAll
func abiFileIwriteAll(h, buf uintptr, count int64, t, q uintptr, which int32) int32 {
	return moveOn("File_iwrite_all", which, h, transfer{buf, count, t}, true, requesting(q))
}

//export abiFileWriteAllBegin
func abiFileWriteAllBegin(h, buf uintptr, count int64, t uintptr, which int32) int32 {
	return moveOn("File_write_all_begin", which, h, transfer{buf, count, t}, true, splitting)
}

//export abiFileWriteAllEnd
func abiFileWriteAllEnd(h, buf, status uintptr) int32 {
	return endSplit("File_write_all_end", h, status)
}

//export abiFileWriteAt
func abiFileWriteAt(h uintptr, offset int64, buf uintptr, count int64, t, status uintptr, which int32) int32 {
	return moveAt("File_write_at", which, h, offset, transfer{buf, count, t}, true, storing(status))
}

//export abiFileIwriteAt
func abiFileIwriteAt(h uintptr, offset int64, buf uintptr, count int64, t, q uintptr, which int32) int32 {
	return moveAt("File_iwrite_at", which, h, offset, transfer{buf, count, t}, true, requesting(q))
}

//export abiFileWriteAtAll
func abiFileWriteAtAll(h uintptr, offset int64, buf uintptr, count int64, t, status uintptr, which int32) int32 {
	return moveAt("File_write_at_all", which, h, offset, transfer{buf, count, t}, true, storing(status))
}

//export abiFileIwriteAtAll
func abiFileIwriteAtAll(h uintptr, offset int64, buf uintptr, count int64, t, q uintptr, which int32) int32 {
	return moveAt("File_iwrite_at_all", which, h, offset, transfer{buf, count, t}, true, requesting(q))
}

//export abiFileWriteAtAllBegin
func abiFileWriteAtAllBegin(h uintptr, offset int64, buf uintptr, count int64, t uintptr, which int32) int32 {
	return moveAt("File_write_at_all_begin", which, h, offset, transfer{buf, count, t}, true, splitting)
}

//export abiFileWriteAtAllEnd
func abiFileWriteAtAllEnd(h, buf, status uintptr) int32 {
	return endSplit("File_write_at_all_end", h, status)
}
