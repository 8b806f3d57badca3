package ntcopy

import "unsafe"

// Claim has a line of memory fetched that this core writes soon, and that others have in their
// caches, so that the store does not wait for them. The program does not wait, and nothing it could
// notice changes.
//
//go:noescape
func Claim(line unsafe.Pointer)

// Fetch is Claim for a line that this core reads soon.
//
//go:noescape
func Fetch(line unsafe.Pointer)
