package socket

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// looks is how many times a connection is looked at in the time for which its peer may
// be silent. The last look but one comes before that time is over.
const looks = 10

// heeded is a connection whose peer is to be noticed when it falls silent.
type heeded interface {
	// hear looks whether the peer answers, and ends the connection if it does not.
	hear(limit time.Duration)
}

// watched is the TCP connections of this process. One timer looks at all of them, which
// takes a system call each; without connections there is none.
var watched = watch{all: make(map[heeded]time.Duration)}

type watch struct {
	mu    sync.Mutex
	all   map[heeded]time.Duration // for how long the peer may be silent
	timer *time.Timer              // nil: nothing is watched
}

// add begins to look after a connection.
func (w *watch) add(h heeded, silence time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all[h] = silence
	if w.timer != nil {
		w.timer.Stop()
	}
	w.timer = time.AfterFunc(w.pace(), w.look)
}

// drop ends that. When it has returned, the connection is not touched any more.
func (w *watch) drop(h heeded) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.all, h)
	if len(w.all) == 0 && w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}

// pace is the time between looks.
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

// fallen reports whether the peer of a socket is silent.
func fallen(fd int, limit time.Duration) bool {
	info, err := unix.GetsockoptTCPInfo(fd, unix.SOL_TCP, unix.TCP_INFO)
	return err == nil && mute(info, limit)
}
