package socket

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// looks is how often a connection is checked within the time for which its peer may be
// silent. The last check but one comes before that time is over.
const looks = 10

// heeded is a connection that notices when its peer falls silent.
type heeded interface {
	// hear checks whether the peer answers, and ends the connection if it does not.
	hear(limit time.Duration)
}

// watched has the TCP connections of this process. One timer checks all of them, with a
// system call each; without connections there is no timer.
var watched = watch{all: make(map[heeded]time.Duration)}

type watch struct {
	mu    sync.Mutex
	all   map[heeded]time.Duration // how long each peer may be silent
	timer *time.Timer              // nil: no connections
}

func (w *watch) add(h heeded, silence time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all[h] = silence
	if w.timer != nil {
		w.timer.Stop()
	}
	w.timer = time.AfterFunc(w.pace(), w.look)
}

// drop ends the checks. When it has returned, the connection is not used any more.
func (w *watch) drop(h heeded) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.all, h)
	if len(w.all) == 0 && w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}

func (w *watch) pace() time.Duration {
	shortest := MaxSilence
	for _, s := range w.all {
		shortest = min(shortest, s)
	}
	return shortest / looks
}

func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil {
		return
	}
	pace := w.pace()
	for h, silence := range w.all {
		h.hear(silence - pace)
	}
	w.timer = time.AfterFunc(pace, w.look)
}

func fallen(fd int, limit time.Duration) bool {
	info, err := unix.GetsockoptTCPInfo(fd, unix.SOL_TCP, unix.TCP_INFO)
	return err == nil && mute(info, limit)
}
