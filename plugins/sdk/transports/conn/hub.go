package conn

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/plugins/sdk/support/polling"
)

// still is the number of looks in a row without a result after which a relay leaves its hub
// although others in it are busy.
const still = 1 << 10

const (
	onePoll    = 100 * time.Nanosecond // approximate time of a poll of a proc
	weighEvery = 64
)

// hub is one goroutine that polls some or all of the relays of this process which are awake: those
// that have passed bytes on lately. A thread for each would have them wait for each other, where
// cores are few; and two relays of one process pass a message on without a switch.
type hub struct {
	spin polling.Spinner
	load atomic.Int32 // how many relays are awake here

	mu      sync.Mutex
	came    []*relay
	running bool
	start   func()      // h.run
	news    atomic.Bool // came has something

	// Used by the goroutine only.
	awake  []*relay
	weight int  // cost of a look, in polls
	weighs uint // looks until it is measured
}

// processors is how many processors the scheduler has, without the one that package sdk adds for a
// while.
var processors = runtime.GOMAXPROCS(0)

// hubs are at most half as many as there are processors, so that other goroutines have the rest.
var hubs = sync.OnceValues(func() ([]*hub, error) {
	list := make([]*hub, max(1, processors/2))
	for i := range list {
		spin, err := polling.NewSpinner("auto")
		if err != nil {
			return nil, err
		}
		h := &hub{spin: spin, weight: 1, weighs: weighEvery}
		h.start = h.run // once, since each such value is allocated
		list[i] = h
	}
	return list, nil
})

// enter has the hub with the fewest relays poll r, until it tells r.rest.
func enter(list []*hub, r *relay) {
	h := list[0]
	for _, x := range list[1:] {
		if x.load.Load() < h.load.Load() {
			h = x
		}
	}
	h.load.Add(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.came = append(h.came, r)
	h.news.Store(true)
	if !h.running {
		h.running = true
		go h.start()
	}
}

// run polls until all relays sleep.
func (h *hub) run() {
	for i := 0; ; i += h.weight {
		if h.news.Load() {
			h.admit()
		}
		if h.weighedLook() {
			i = -h.weight
			if h.spin.Yields() && h.spin.PollsBeforeYield() == 0 {
				polling.Yield() // a waiter for the moved bytes may share the core
			}
		} else if i == 0 {
			h.spin.Begin()
		}
		if processors == 1 {
			runtime.Gosched() // other goroutines have no processor
		}
		if len(h.awake) == 0 || i >= 0 && h.spin.Over(i) {
			i = -h.weight
			if h.dismiss(); h.stop() {
				return
			}
		}
	}
}

// weighedLook is look, but now and then it measures how long a look takes that finds nothing: looks
// at sockets, or at a vendor's queue, take longer than the polls by which package polling counts,
// and whoever waits for the core with what we wait for would wait as long.
func (h *hub) weighedLook() bool {
	if h.weighs--; h.weighs > 0 {
		return h.look()
	}
	h.weighs = weighEvery
	return h.weigh(h.look)
}

func (h *hub) weigh(look func() bool) (moved bool) {
	before := time.Now()
	if moved = look(); !moved { // a look that was interrupted changes the weight little
		h.weight = max(1, min(int(time.Since(before)/onePoll), 2*h.weight))
	}
	return moved
}

func (h *hub) look() (moved bool) {
	rest := h.awake[:0]
	for _, r := range h.awake {
		m, err := r.step()
		if m {
			moved, r.looks = true, 0
		} else {
			r.looks++
		}
		if r.failed = err; err != nil || r.over() || r.looks > still {
			h.release(r)
			continue
		}
		rest = append(rest, r)
	}
	clear(h.awake[len(rest):])
	h.awake = rest
	return moved
}

func (h *hub) admit() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.awake = append(h.awake, h.came...)
	clear(h.came)
	h.came = h.came[:0]
	h.news.Store(false)
}

func (h *hub) dismiss() {
	for _, r := range h.awake {
		h.release(r)
	}
	clear(h.awake)
	h.awake = h.awake[:0]
}

// release gives a relay back to its own goroutine.
func (h *hub) release(r *relay) {
	r.looks = 0
	h.load.Add(-1)
	r.rest <- struct{}{} // it has room
}

// stop reports whether there is nothing to poll: the goroutine ends, and the next relay starts
// another.
func (h *hub) stop() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running = len(h.came) > 0
	return !h.running
}
