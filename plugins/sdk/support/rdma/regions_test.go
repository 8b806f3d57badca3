package rdma

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func descriptors(t *testing.T) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(fds)
}

// However many blocks there are, they need few descriptors, and not much more memory than their own.
func TestManyBlocks(t *testing.T) {
	var r Regions
	before := descriptors(t)
	const blocks, size = 4000, 32 << 10
	all := make([][]byte, blocks)
	for i := range all {
		var err error
		if all[i], err = r.Allocate(size); err != nil {
			t.Fatal(err)
		}
	}
	if n := descriptors(t) - before; n > 24 {
		t.Errorf("%d blocks have %d descriptors", blocks, n)
	}
	if r.size > blocks*size*5/4 {
		t.Errorf("%d bytes of regions for %d of blocks", r.size, blocks*size)
	}
	for _, b := range all {
		if err := r.Free(base(b)); err != nil {
			t.Fatal(err)
		}
	}
	if n := descriptors(t) - before; n != 0 || r.size != 0 || len(r.sorted) != 0 {
		t.Errorf("%d descriptors, %d bytes and %d blocks are left", n, r.size, len(r.sorted))
	}
}

// Blocks do not overlap, are zero when they are allocated, and each is found, with its place.
func TestBlocksAtRandom(t *testing.T) {
	for seed := range uint64(20) {
		var r Regions
		random := rand.New(rand.NewPCG(seed, 1))
		live := map[byte][]byte{}
		for step := range 300 {
			mark := byte(step%60 + 1)
			if b := live[mark]; b != nil {
				if rest := bytes.Trim(b, string([]byte{mark})); len(rest) > 0 {
					t.Fatalf("seed %d, step %d: another block has written to this one", seed, step)
				}
				if err := r.Free(base(b)); err != nil {
					t.Fatal(err)
				}
				delete(live, mark)
				continue
			}
			b, err := r.Allocate(1 + random.IntN(300_000))
			if err != nil {
				t.Fatal(err)
			}
			if rest := bytes.Trim(b, "\x00"); len(rest) > 0 {
				t.Fatalf("seed %d, step %d: it has bytes of an earlier block", seed, step)
			}
			for i := range b {
				b[i] = mark
			}
			live[mark] = b
			x, at := r.borrow(b[len(b)/2:])
			if x == nil || &x.mem[at] != &b[len(b)/2] {
				t.Fatalf("seed %d, step %d: it is found at %d of %+v", seed, step, at, x)
			}
			r.release(x)
		}
	}
}

// A block that is freed while it is used does not get a new user.
func TestFreedBlockIsNotGivenAgain(t *testing.T) {
	var r Regions
	keep, err := r.Allocate(4096)
	if err != nil {
		t.Fatal(err)
	}
	first, err := r.Allocate(64 << 10)
	if err != nil {
		t.Fatal(err)
	}
	x, _ := r.borrow(first)
	if err := r.Free(base(first)); err != nil {
		t.Fatal(err)
	}
	second, err := r.Allocate(64 << 10)
	if err != nil || &second[0] == &first[0] {
		t.Fatalf("it is given again while it is used, %v", err)
	}
	r.release(x)
	third, err := r.Allocate(64 << 10)
	if err != nil || &third[0] != &first[0] {
		t.Fatalf("it is not given again, %v", err)
	}
	_ = keep
}

// Memory that was made elsewhere is lent, also without its descriptor, and unmapped by Free.
func TestAdopt(t *testing.T) {
	before := descriptors(t)
	fd, err := unix.MemfdCreate("x", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Ftruncate(fd, 100_000); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		t.Fatal(err)
	}
	mem, err := unix.Mmap(fd, 0, 100_000, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	var r Regions
	l, p := sides(t, &r)
	between := descriptors(t)
	if err := r.Adopt(fd, mem); err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(fd)
	if n, err := l.Lend([][]byte{mem[4096:]}); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	e := next(t, p, SendLoan)
	got, there := mapped(t, p)
	if mem[5000] = 9; e.Offset != 4096 || got.Size != 100_000 || there[5000] != 9 {
		t.Fatalf("%+v of %+v", e, got)
	}
	complete(t, p, Entry{Kind: LoanSent, Number: e.Number})
	l.poll()
	if err := r.Free(base(mem)); err != nil {
		t.Fatal(err)
	}
	if n := descriptors(t) - between; n != -1 || r.size != 0 {
		t.Errorf("%d descriptors more than %d, %d bytes", n, before, r.size)
	}
}

// A block that is too large for any memory is refused, and leaves nothing behind.
func TestTooLargeBlock(t *testing.T) {
	var r Regions
	first, err := r.Allocate(4096)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{math.MaxInt, math.MaxInt - 4095, maxRegionSize + 1, 0, -1} {
		if _, err := r.Allocate(size); !errors.Is(err, ErrNotLent) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	other := make([]byte, 64<<10)
	if x, _ := r.borrow(other); x != nil {
		t.Error("memory of others can be lent")
	}
	if err := r.Free(uintptr(unsafe.Pointer(&first[0]))); err != nil {
		t.Error(err)
	}
}
