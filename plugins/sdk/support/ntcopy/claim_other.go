//go:build !amd64

package ntcopy

import "unsafe"

// Claim does nothing on this processor, where its gain was not measured.
func Claim(unsafe.Pointer) {}

// Fetch does nothing on this processor.
func Fetch(unsafe.Pointer) {}
