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
	Refused    uint64 // uses of memory that could not be registered
}

// fileID identifies a file in memory in whatever process its descriptor is.
type fileID struct{ dev, inode uint64 }

// entry is a file that some link was lent.
type entry struct {
	id    fileID
	size  int64
	fd    int // a copy
	lends int // links that were lent it

	registration Registration  // nil: it is not registered
	mem          []byte        // nil: it is not mapped
	refused      uint          // how often it could not be registered, in a row
	skip         int           // uses for which that is not tried again
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

// hold keeps a file that was lent for one more call of reclaim.
func (c *Cache) hold(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.lends++
}

// reclaim reverses lend and hold. The last one closes the registration, once nothing uses it.
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

// use returns the memory of a file and its registration, which are kept until unuse. The registration
// is nil if the memory cannot be registered.
func (c *Cache) use(e *entry) (Registration, []byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.registration != nil {
		c.counts.Hits++
	} else if err := c.register(e); err != nil {
		c.unmapUnused(e)
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
		if e.registration != nil {
			e.at = c.idle.PushFront(e)
		}
		c.unmapUnused(e)
		c.discard(e)
		c.makeRoom(0)
	}
}

func (c *Cache) unmapUnused(e *entry) {
	if e.uses == 0 && e.registration == nil && e.mem != nil {
		_ = unix.Munmap(e.mem) // cannot fail: it is mapped
		e.mem = nil
	}
}

// maxSkip bounds for how many uses it is not tried again to register memory.
const maxSkip = 1 << 10

// register maps and registers a file, if it can be registered. Each failure closes what is idle, so
// the next attempts are made more and more seldom.
func (c *Cache) register(e *entry) error {
	if e.mem == nil {
		mem, err := unix.Mmap(e.fd, 0, int(e.size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return fmt.Errorf("map %d bytes of lent memory: %w", e.size, err)
		}
		e.mem = mem
	}
	if e.skip > 0 {
		e.skip--
		c.counts.Refused++
		return nil
	}
	c.makeRoom(e.size)
	reg, err := c.domain.Register(Memory{e.fd, e.mem})
	for err != nil && c.evict() { // the hardware, or a limit of the kernel, may have less than the budget
		reg, err = c.domain.Register(Memory{e.fd, e.mem})
	}
	if err != nil {
		e.skip = min(1<<e.refused, maxSkip) - 1
		e.refused = min(e.refused+1, 20)
		c.counts.Refused++
		return nil
	}
	if n := len(reg.Key()); n > maxKey {
		return errors.Join(fmt.Errorf("a key of %d bytes, at most %d", n, maxKey), reg.Close())
	}
	e.registration, e.refused = reg, 0
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
