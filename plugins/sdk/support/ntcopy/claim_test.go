package ntcopy

import (
	"bytes"
	"testing"
	"unsafe"
)

// The instructions of Claim and Fetch are known to this processor, change nothing, and do not fault
// where there is no memory.
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
