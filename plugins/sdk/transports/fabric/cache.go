package fabric

import (
	"container/list"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// DefaultBudget is how many bytes a Cache keeps registered if its user does not say otherwise.
const DefaultBudget = 1 << 30

// Cache keeps memory registered that procs have lent, so that each region is registered once for
// all links, and not for each message. When more is registered than its budget it closes
// registrations that no message uses, the one that was used longest ago first. A single region may
// be larger than the budget.
type Cache struct {
	domain Domain
	budget int64

	mu      sync.Mutex
	entries map[fileID]*entry
	idle    list.List // of *entry without uses, the one used last in front
	counts  CacheCounts
}

// CacheCounts say what a Cache has done.
type CacheCounts struct {
	Registered int64  // bytes, at present
	Misses     uint64 // registrations that were made
	Hits       uint64 // uses of memory that was registered already
	Evictions  uint64 // registrations that were closed to make room
}

// fileID identifies a file in memory in whatever process its descriptor is.
type fileID struct{ dev, inode uint64 }

// entry is a file that some link was lent.
type entry struct {
	id    fileID
	size  int64
	fd    int // a copy
	lends int // links that were lent it

	registration Registration // nil: it is not registered
	mem          []byte
	uses         int           // messages and reads that need the registration
	at           *list.Element // in Cache.idle
}

// NewCache makes a Cache for memory that domain registers. A budget of 0 means DefaultBudget.
func NewCache(domain Domain, budget int64) *Cache {
	if budget <= 0 {
		budget = DefaultBudget
	}
	return &Cache{domain: domain, budget: budget, entries: map[fileID]*entry{}}
}

// Counts returns what the cache has done.
func (c *Cache) Counts() CacheCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}

// lend makes a file known, and owns the descriptor. Nothing is registered yet. Each call is
// reversed by one of reclaim.
func (c *Cache) lend(fd int, size int64) (*entry, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, errors.Join(fmt.Errorf("lent memory: %w", err), unix.Close(fd))
	}
	id := fileID{uint64(st.Dev), st.Ino} //nolint:unconvert // 32 bits on some machines
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[id]
	if e == nil {
		e = &entry{id: id, size: size, fd: fd}
		c.entries[id] = e
	} else {
		_ = unix.Close(fd) // the copy that is kept will do
	}
	e.lends++
	return e, nil
}

// reclaim reverses lend. The last one closes the registration, once nothing uses it.
func (c *Cache) reclaim(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.lends--
	c.discard(e)
}

// discard closes a file that no link has any more and nothing uses.
func (c *Cache) discard(e *entry) {
	if e.lends > 0 || e.uses > 0 {
		return
	}
	c.unregister(e)
	delete(c.entries, e.id)
	_ = unix.Close(e.fd)
}

// use returns the registration of a file, which is kept until unuse.
func (c *Cache) use(e *entry) (Registration, []byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.registration != nil {
		c.counts.Hits++
	} else if err := c.register(e); err != nil {
		return nil, nil, err
	}
	e.uses++
	if e.at != nil {
		c.idle.Remove(e.at)
		e.at = nil
	}
	return e.registration, e.mem, nil
}

// unuse reverses use.
func (c *Cache) unuse(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.uses--; e.uses == 0 {
		e.at = c.idle.PushFront(e)
		c.discard(e)
		c.makeRoom(0)
	}
}

func (c *Cache) register(e *entry) error {
	c.makeRoom(e.size)
	mem, err := unix.Mmap(e.fd, 0, int(e.size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map %d bytes of lent memory: %w", e.size, err)
	}
	reg, err := c.domain.Register(Memory{e.fd, mem})
	for err != nil && c.evict() { // the hardware, or a limit of the kernel, may have less than the budget
		reg, err = c.domain.Register(Memory{e.fd, mem})
	}
	if err == nil && len(reg.Key()) > maxKey {
		err = errors.Join(fmt.Errorf("a key of %d bytes, at most %d", len(reg.Key()), maxKey), reg.Close())
	}
	if err != nil {
		return errors.Join(fmt.Errorf("register %d bytes of lent memory, beside %d that are in use: %w", e.size, c.counts.Registered, err), unix.Munmap(mem))
	}
	e.registration, e.mem = reg, mem
	c.counts.Misses++
	c.counts.Registered += e.size
	return nil
}

// makeRoom closes registrations that nothing uses until size more bytes fit the budget, if
// possible.
func (c *Cache) makeRoom(size int64) {
	for c.counts.Registered+size > c.budget && c.evict() {
	}
}

// evict closes the registration that was used longest ago, and reports whether there was one
// without uses.
func (c *Cache) evict() bool {
	last := c.idle.Back()
	if last == nil {
		return false
	}
	c.unregister(last.Value.(*entry))
	c.counts.Evictions++
	return true
}

func (c *Cache) unregister(e *entry) {
	if e.registration == nil {
		return
	}
	if e.at != nil {
		c.idle.Remove(e.at)
		e.at = nil
	}
	_ = e.registration.Close() // what it could not release ends with the process
	_ = unix.Munmap(e.mem)     // cannot fail: it is mapped
	e.registration, e.mem = nil, nil
	c.counts.Registered -= e.size
}
