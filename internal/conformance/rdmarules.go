package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/rdma"
	"github.com/openimpi/impi/plugins/sdk/support/relay"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// rdmaCases are about memory that procs lend to a plugin, by data plane "rdma".
var rdmaCases = []Case{
	{ID: "P-RDMA-01", Name: "lent-memory", Kind: Correct, run: lentMemory,
		Rule: "what is sent from lent memory, or received there, arrives whole, and no byte beside it changes"},
	{ID: "P-RDMA-02", Name: "lent-anew", Kind: Correct, run: lentAnew,
		Rule: "when the number of a region is lent in another generation, it is the new memory that is read and written"},
	{ID: "P-RDMA-03", Name: "many-regions", Kind: Correct, run: manyRegions,
		Rule: "a proc can lend many regions, and use them in any order; if less than 5 MiB may be registered, those whose registration was closed to make room for others are registered again"},
	{ID: "P-RDMA-04", Name: "gone-with-loans", Kind: Robust, run: goneWithLoans,
		Rule: "when a proc is gone whose lent memory the peer has not read, the peer's link breaks: what was not read is not delivered"},
}

// borrower is a proc whose links lend memory.
type borrower struct {
	link.Lender
	regions *rdma.Regions
}

// lenders skips the case if links do not lend, and makes a link whose two procs do.
func (e *env) lenders(ctx context.Context) (a, b borrower) {
	if e.plane != transports.PlaneRDMA {
		e.Skipf("by %s a proc lends no memory", e.plane)
	}
	_, far, ln := e.listening()
	x, y := e.connect(ctx, far, ln)
	return e.lends(x), e.lends(y)
}

// lends makes a link anew that lends memory, as a proc does.
func (e *env) lends(l link.Link) borrower {
	fds, _, err := l.(transports.Relayed).Detach()
	e.must(err)
	b := borrower{regions: new(rdma.Regions)}
	made, err := relay.NewRDMA(fds[0], fds[1], fds[2], "judged", b.regions)
	e.must(err)
	e.Cleanup(func() { made.Close() })
	b.Lender = made
	return b
}

// memory allocates n bytes that can be lent.
func (e *env) memory(b borrower, n int) []byte {
	mem, err := b.regions.Allocate(n)
	e.must(err)
	return mem
}

func stamp(b []byte, seed int) {
	for i := range b {
		b[i] = byte(i*7 + i/251 + seed*31)
	}
}

// pass sends from and receives into, which are of one length.
func pass(ctx context.Context, a, b borrower, from, into []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sent := make(chan error, 1)
	go func() { sent <- move(ctx, a, a.Lend, link.Writable, from) }()
	if err := receive(ctx, b, into); err != nil {
		cancel()
		<-sent
		return fmt.Errorf("receive %d bytes: %w", len(into), err)
	}
	return <-sent
}

// beside is how many bytes around what is received have to stay as they are.
const beside = 4096

func lentMemory(e *env) {
	ctx := e.context()
	a, b := e.lenders(ctx)
	const most = 2 << 20
	from, into, heap := e.memory(a, most), e.memory(b, most+2*beside), make([]byte, most)
	for i, n := range []int{most, 1, 31 << 10, 33 << 10, 300_001, most} {
		stamp(from[:n], i)
		for j := range into {
			into[j] = 0xee
		}
		e.must(pass(ctx, a, b, from[:n], into[beside:][:n]))
		if at := different(from[:n], into[beside:]); at >= 0 {
			e.Fatalf("%d bytes from lent memory into lent memory: byte %d is %#02x, not %#02x", n, at, into[beside+at], from[at])
		}
		for _, around := range [][]byte{into[:beside], into[beside+n:]} {
			if rest := bytes.TrimLeft(around, "\xee"); len(rest) > 0 {
				e.Fatalf("%d bytes were received into lent memory, and memory beside it was written", n)
			}
		}
		stamp(from[:n], i+100)
		e.must(pass(ctx, a, b, from[:n], heap[:n]))
		if at := different(from[:n], heap); at >= 0 {
			e.Fatalf("%d bytes from lent memory into other memory: byte %d is %#02x, not %#02x", n, at, heap[at], from[at])
		}
	}
}

// different returns where a differs from the beginning of b, or -1.
func different(a, b []byte) int {
	if bytes.Equal(a, b[:len(a)]) {
		return -1
	}
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

func lentAnew(e *env) {
	ctx := e.context()
	a, b := e.lenders(ctx)
	const n = 200_000
	for i := range 20 {
		from, into := e.memory(a, n), e.memory(b, n)
		stamp(from, i)
		e.must(pass(ctx, a, b, from, into))
		if at := different(from, into); at >= 0 {
			e.Fatalf("from generation %d of a region: byte %d is %#02x, not %#02x", i+1, at, into[at], from[at])
		}
		e.must(a.regions.Free(uintptr(unsafe.Pointer(&from[0]))))
		e.must(b.regions.Free(uintptr(unsafe.Pointer(&into[0]))))
	}
}

func manyRegions(e *env) {
	ctx := e.context()
	a, b := e.lenders(ctx)
	const n, regions = 64 << 10, 80
	var from [regions][]byte
	for i := range from {
		var err error
		from[i], err = a.regions.AllocateApart(n)
		e.must(err)
		stamp(from[i], i)
	}
	into := e.memory(b, n)
	for k := range 2 * regions {
		i := k * 7 % regions
		e.must(pass(ctx, a, b, from[i], into))
		if at := different(from[i], into); at >= 0 {
			e.Fatalf("from region %d of %d: byte %d is %#02x, not %#02x", i, regions, at, into[at], from[i][at])
		}
	}
}

func goneWithLoans(e *env) {
	ctx := e.context()
	a, b := e.lenders(ctx)
	from := e.memory(a, 1<<20)
	if _, err := a.Lend([][]byte{from}); err != nil {
		e.Fatalf("lend: %v", err)
	}
	e.must(a.Close())
	var got int
	buf := make([]byte, 64<<10)
	for {
		n, err := b.Recv([][]byte{buf})
		if got += n; err != nil {
			if !errors.Is(err, link.ErrBroken) {
				e.Fatalf("%d of %d bytes that were lent came from a proc that is gone, and then: %v", got, len(from), err)
			}
			return
		}
		if n == 0 {
			e.must(await(ctx, b, link.Readable))
		}
	}
}
