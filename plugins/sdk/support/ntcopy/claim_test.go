package ntcopy

import (
	"bytes"
	"testing"
	"unsafe"
)

// Claim and Fetch change nothing, and memory that is not there does no harm.
func TestClaim(t *testing.T) {
	b := bytes.Repeat([]byte{7}, 256)
	for i := range b {
		Claim(unsafe.Pointer(&b[i]))
		Fetch(unsafe.Pointer(&b[i]))
	}
	if !bytes.Equal(b, bytes.Repeat([]byte{7}, 256)) {
		t.Errorf("%v", b)
	}
	Claim(nil)
	Fetch(nil)
}
