//go:build !amd64

package ntcopy

import "unsafe"

// Claim does nothing on this processor, where nobody has measured what it gains.
func Claim(unsafe.Pointer) {}

// Fetch does nothing either.
func Fetch(unsafe.Pointer) {}
