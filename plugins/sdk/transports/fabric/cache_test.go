package fabric

import (
	"errors"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// book is a Domain that keeps book of what is registered.
type book struct {
	limit int64 // bytes; 0: none
	used  int64
	asked func()
	log   []int64 // sizes that were registered, or unregistered as negative numbers
}

type page struct {
	b *book
	m Memory
}

var errBook = errors.New("the book is full")

func (b *book) Register(m Memory) (Registration, error) {
	n := int64(len(m.Bytes))
	if b.asked != nil {
		b.asked()
	}
	if b.limit > 0 && b.used+n > b.limit {
		return nil, errBook
	}
	b.used += n
	b.log = append(b.log, n)
	return &page{b, m}, nil
}

func (p *page) Key() []byte { return []byte("key") }

func (p *page) Close() error {
	p.m.Bytes[0] = 1 // it is still mapped
	p.b.used -= int64(len(p.m.Bytes))
	p.b.log = append(p.b.log, -int64(len(p.m.Bytes)))
	return nil
}

func memory(t *testing.T, pages int) (fd int, size int64) {
	t.Helper()
	fd, err := unix.MemfdCreate("x", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Ftruncate(fd, int64(pages)<<12); err != nil {
		t.Fatal(err)
	}
	return fd, int64(pages) << 12
}

func lendTo(t *testing.T, c *Cache, pages int) *entry {
	t.Helper()
	e, err := c.lend(memory(t, pages))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func used(t *testing.T, c *Cache, e *entry) {
	t.Helper()
	if _, _, err := c.use(e); err != nil {
		t.Fatal(err)
	}
}

func TestEviction(t *testing.T) {
	b := &book{}
	c := NewCache(b, 4<<12)
	one, two, three := lendTo(t, c, 1), lendTo(t, c, 2), lendTo(t, c, 3)
	use := func(e *entry) {
		used(t, c, e)
		c.unuse(e)
	}
	use(one)
	use(two)
	use(one) // two is now the one that was used longest ago
	use(three)
	if want := []int64{1 << 12, 2 << 12, -2 << 12, 3 << 12}; !slices.Equal(b.log, want) {
		t.Fatalf("%v, want %v", b.log, want)
	}
	if got, want := c.Counts(), (CacheCounts{Registered: 4 << 12, Misses: 3, Hits: 1, Evictions: 1}); got != want {
		t.Fatalf("%+v, want %+v", got, want)
	}
	// What is in use is not evicted, even if that is more than the budget.
	used(t, c, one)
	used(t, c, three)
	used(t, c, two)
	if got := c.Counts().Registered; got != 6<<12 {
		t.Fatalf("%d bytes are registered", got)
	}
	c.unuse(two)
	if got := c.Counts().Registered; got != 4<<12 {
		t.Fatalf("%d bytes are registered when one is not used any more", got)
	}
	c.unuse(one)
	c.unuse(three)
	for _, e := range []*entry{one, two, three} {
		c.reclaim(e)
	}
	if b.used != 0 || len(c.entries) != 0 || c.idle.Len() != 0 {
		t.Fatalf("%d bytes are left, %d entries, %d idle", b.used, len(c.entries), c.idle.Len())
	}
}

func TestHardwareLimit(t *testing.T) {
	b := &book{limit: 3 << 12}
	c := NewCache(b, 0)
	one, two, large := lendTo(t, c, 1), lendTo(t, c, 2), lendTo(t, c, 3)
	used(t, c, one)
	c.unuse(one)
	used(t, c, two)
	if reg, mem, err := c.use(large); reg != nil || len(mem) != 3<<12 || err != nil {
		t.Fatalf("two is in use: %v, %d bytes, %v", reg, len(mem), err)
	}
	c.unuse(large)
	if large.mem != nil || c.Counts().Refused != 1 {
		t.Fatalf("it is still mapped, %+v", c.Counts())
	}
	c.unuse(two)
	used(t, c, large)
	if b.used != 3<<12 || c.Counts().Evictions != 2 {
		t.Fatalf("%d bytes, %+v", b.used, c.Counts())
	}
}

// What cannot be registered is tried again, more and more seldom.
func TestRefusals(t *testing.T) {
	b := &book{limit: 1}
	c := NewCache(b, 0)
	e := lendTo(t, c, 1)
	tried := 0
	b.asked = func() { tried++ }
	for range 100 {
		used(t, c, e)
		c.unuse(e)
	}
	if tried != 7 || c.Counts().Refused != 100 {
		t.Fatalf("it was tried %d times, %+v", tried, c.Counts())
	}
	b.limit = 0
	for range 100 {
		used(t, c, e)
		c.unuse(e)
	}
	if e.registration == nil {
		t.Fatal("it is not registered although there is room")
	}
}

// A region that two links were lent is registered once, until both have given it back and the last
// message that uses it was sent.
func TestLentTwice(t *testing.T) {
	b := &book{}
	c := NewCache(b, 0)
	fd, size := memory(t, 1)
	again, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	x, err := c.lend(fd, size)
	if err != nil {
		t.Fatal(err)
	}
	y, err := c.lend(again, size)
	if err != nil || x != y {
		t.Fatal(x, y, err)
	}
	used(t, c, x)
	used(t, c, y)
	c.reclaim(x)
	c.reclaim(y)
	c.unuse(x)
	if b.used != 1<<12 {
		t.Fatal("it was unregistered while it is in use")
	}
	c.unuse(y)
	if want := []int64{1 << 12, -1 << 12}; !slices.Equal(b.log, want) {
		t.Fatalf("%v, want %v", b.log, want)
	}
}
