package poll

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// Shared waits for descriptors on behalf of any number of goroutines, with a single thread.
// The zero value is ready to use. The thread starts at the first Wait and never ends, so a
// process should have one Shared.
type Shared struct {
	once sync.Once
	set  *Set
	err  error // why there is no set

	mu    sync.Mutex
	waits map[uint32]chan struct{}
	keys  map[int]uint32 // keys of the waiting goroutines, by descriptor
	last  uint32         // last key
}

// Wait returns nil when fd is ready or has failed, or the cause of ctx's end. One goroutine
// at a time may wait for a descriptor. If fd is closed meanwhile, only the end of ctx ends
// the wait; a Wait for a new descriptor with the same number is not affected.
func (s *Shared) Wait(ctx context.Context, fd int, want link.Interest) error {
	s.once.Do(s.start)
	if s.err != nil {
		return s.err
	}
	key, ready, err := s.enter(fd, want)
	if err != nil {
		return err
	}
	defer s.leave(key, fd)
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Shared) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waits, s.keys = make(map[uint32]chan struct{}), make(map[int]uint32)
	if s.set, s.err = NewSet(); s.err == nil {
		go s.serve()
	}
}

func (s *Shared) enter(fd int, want link.Interest) (key uint32, ready <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.last++; s.waits[s.last] != nil; s.last++ { // skip keys in use: the counter wraps after 2^32 waits
	}
	if err := s.set.once(fd, s.last, want); err != nil {
		return 0, nil, err
	}
	c := make(chan struct{})
	s.waits[s.last], s.keys[fd] = c, s.last
	return s.last, c, nil
}

func (s *Shared) leave(key uint32, fd int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waits, key)
	if s.keys[fd] == key { // otherwise fd was closed, and a new descriptor has its number
		delete(s.keys, fd)
		_ = s.set.Remove(fd)
	}
}

func (s *Shared) serve() {
	for {
		ready, err := s.set.Wait(-1)
		if err != nil {
			panic(fmt.Sprintf("poll: %v", err)) // cannot happen: the set is ours, and is never closed
		}
		s.mu.Lock()
		for _, e := range ready {
			if c := s.waits[e.Key]; c != nil {
				close(c) // once: the key is not reused before this Wait has returned
			}
		}
		s.mu.Unlock()
	}
}

// once adds a descriptor for a single event.
func (s *Set) once(fd int, key uint32, want link.Interest) error {
	ev := unix.EpollEvent{Events: mask(want) | unix.EPOLLONESHOT, Fd: int32(key)}
	err := unix.EpollCtl(s.fd, unix.EPOLL_CTL_ADD, fd, &ev)
	if errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("two goroutines wait for descriptor %d", fd)
	}
	if err != nil {
		return fmt.Errorf("epoll: descriptor %d: %w", fd, err)
	}
	return nil
}
