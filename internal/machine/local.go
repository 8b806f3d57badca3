package machine

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/openimpi/impi/internal/poll"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// Local is the machine of real programs: the kernel's clock, epoll and sleep.
type Local struct{}

// NewSet makes an epoll set, with an eventfd for Wake.
func (Local) NewSet() (Set, error) {
	set, err := poll.NewSet()
	if err != nil {
		return nil, err
	}
	waker, err := poll.NewWaker()
	if err != nil {
		return nil, errors.Join(err, set.Close())
	}
	if err := set.Add(waker.FD(), WakeKey, link.Readable); err != nil {
		return nil, errors.Join(err, set.Close(), waker.Close())
	}
	return &localSet{Set: set, waker: waker}, nil
}

// AfterFunc is time.AfterFunc: f runs in a goroutine of its own.
func (Local) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// Now returns the time of the computer, with its monotonic clock.
func (Local) Now() time.Time { return time.Now() }

// SharesMemory marks the machine as one whose procs may map each other's memory: see Memory.
func (Local) SharesMemory() {}

// Exit ends the program.
func (Local) Exit(code int, why string) {
	Report(why)
	os.Exit(code)
}

// Report says why a proc ends, if that is not empty.
func Report(why string) {
	if why != "" {
		fmt.Fprintln(os.Stderr, "impi:", why)
	}
}

// localSet is an epoll set with an eventfd in it.
type localSet struct {
	*poll.Set
	waker *poll.Waker

	mu     sync.Mutex // held while the eventfd is used, so that it is not closed meanwhile
	closed bool
}

func (s *localSet) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed { // otherwise its number may belong to another descriptor
		s.waker.Wake()
	}
}

func (s *localSet) Clear() { s.waker.Clear() }

// Close releases both descriptors.
func (s *localSet) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return errors.Join(s.Set.Close(), s.waker.Close())
}
