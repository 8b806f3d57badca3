// Package loglimit keeps a log readable, and its disk from filling up, when one thing
// happens again and again: of lines that say the same only the first are written,
// and then how many more there were.
package loglimit

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

const (
	burst   = 40               // lines of one kind that are written in a window; a job has 32 clients
	again   = 1                // in each window that follows one in which lines were left out
	window  = 10 * time.Second // from the first of them
	maxRuns = 256              // kinds that are told apart; further ones count as one
	maxText = 200              // bytes of a message that tell its kind
)

// Limiter decides which lines are written. Debug and trace lines always are, as users who ask for
// them need all of them.
type Limiter struct {
	log    hclog.Logger
	recent Recent

	mu   sync.Mutex
	off  bool
	runs map[kind]*run
}

// kind is what lines have in common that say the same: level and message, but for
// the numbers in it. Arguments do not count, as they have addresses.
type kind struct {
	level hclog.Level
	text  string
}

type run struct {
	since   time.Time
	message string // of the first line
	written int
	left    int // lines left out
	timer   *time.Timer
}

// New returns a logger whose lines are limited, and its Limiter, which has to be closed at the end.
func New(opts hclog.LoggerOptions) (hclog.Logger, *Limiter) {
	l := &Limiter{runs: make(map[kind]*run)}
	opts.Exclude = l.exclude
	log := hclog.NewInterceptLogger(&opts)
	log.RegisterSink(&l.recent)
	l.log = log
	return l.log, l
}

// Recent returns the last lines. A nil Limiter has none.
func (l *Limiter) Recent() []Line {
	if l == nil {
		return nil
	}
	return l.recent.Lines()
}

// Close logs what was left out so far. From then on every line is written, since the last lines
// matter. It does nothing to a nil Limiter.
func (l *Limiter) Close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	l.off = true
	runs := l.runs
	l.runs = nil
	for _, r := range runs {
		if r.timer != nil {
			r.timer.Stop()
		}
	}
	l.mu.Unlock()
	for k, r := range runs {
		l.tell(k, r)
	}
}

// exclude reports whether a line is left out. The logger's lock is held.
func (l *Limiter) exclude(level hclog.Level, message string, _ ...any) bool {
	if level < hclog.Info {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.off {
		return false
	}
	k, now := kindOf(level, message), time.Now()
	r := l.runs[k]
	if r == nil || r.left == 0 && now.Sub(r.since) >= window {
		k, r = l.begin(k, message, now)
	}
	if r.written < burst {
		r.written++
		return false
	}
	if r.left++; r.timer == nil {
		r.timer = time.AfterFunc(window-now.Sub(r.since), func() { l.flush(k, r) })
	}
	return true
}

// begin starts a run of lines, or returns the one shared by all kinds for which there is no room.
func (l *Limiter) begin(k kind, message string, now time.Time) (kind, *run) {
	if len(l.runs) >= maxRuns {
		for o, r := range l.runs {
			if r.left == 0 && now.Sub(r.since) >= window {
				delete(l.runs, o)
			}
		}
	}
	if len(l.runs) >= maxRuns {
		k, message = kind{k.level, ""}, "messages of many kinds"
		if r := l.runs[k]; r != nil {
			return k, r
		}
	}
	r := &run{since: now, message: message}
	l.runs[k] = r
	return k, r
}

func (l *Limiter) flush(k kind, r *run) {
	l.mu.Lock()
	mine := l.runs[k] == r
	if mine { // of what goes on little more is written than how many
		l.runs[k] = &run{since: time.Now(), message: r.message, written: burst - again}
	}
	l.mu.Unlock()
	if mine {
		l.tell(k, r)
	}
}

func (l *Limiter) tell(k kind, r *run) {
	if r.left > 0 {
		l.log.Log(k.level, fmt.Sprintf("%s … and %d more like this in %v", r.message, r.left, time.Since(r.since).Round(time.Millisecond)))
	}
}

var number = regexp.MustCompile(`[0-9]+`)

func kindOf(level hclog.Level, message string) kind {
	return kind{level, number.ReplaceAllString(strings.ToValidUTF8(message[:min(len(message), maxText)], ""), "#")}
}
