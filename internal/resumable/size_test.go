package resumable

import (
	"testing"
	"unsafe"
)

// What a short packet needs is in one page of 4096 bytes: the allocator gives whole pages
// for a size that is not much less than two of them. What the kernel reads and writes
// begins with a line of the cache.
func TestPages(t *testing.T) {
	var l Link
	if n := unsafe.Sizeof(l); n > 8192 || n <= 6912 {
		t.Errorf("a link has %d bytes, for which the allocator does not take two pages", n)
	}
	const packet = 32 + 128 + 64
	if at := unsafe.Offsetof(l.in); at%64 != 0 || at+packet > 4096 {
		t.Errorf("what is read ahead begins at %d", at)
	}
	if at := unsafe.Offsetof(l.machine); at%64 != 0 {
		t.Errorf("the machine begins at %d", at)
	}
}
