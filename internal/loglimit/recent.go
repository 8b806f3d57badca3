package loglimit

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// How many lines of a log are kept.
const (
	keptLines  = 200 // info and above
	keptFaults = 100 // warn and above, so that much information does not push them out
	maxLine    = 500 // bytes of a line's text
)

// Line is a line of a log, without its time's and its level's columns.
type Line struct {
	At    time.Time
	Level hclog.Level
	From  string // name of the logger
	Text  string // message and arguments
}

// Recent keeps the last lines of a logger of level info and above, whatever the logger's own level
// is.
type Recent struct {
	mu     sync.Mutex
	lines  ring
	faults ring
}

// ring is the last lines of many. next is where the oldest one is, once it is full.
type ring struct {
	lines []Line
	next  int
}

func (r *ring) add(l Line, most int) {
	if len(r.lines) < most {
		r.lines = append(r.lines, l)
		return
	}
	r.lines[r.next] = l
	r.next = (r.next + 1) % most
}

// Accept keeps a line. It is called by hclog.
func (r *Recent) Accept(name string, level hclog.Level, message string, args ...any) {
	if level < hclog.Info {
		return
	}
	l := Line{At: time.Now(), Level: level, From: name, Text: textOf(message, args)}
	r.mu.Lock()
	defer r.mu.Unlock()
	if level >= hclog.Warn {
		r.faults.add(l, keptFaults)
	} else {
		r.lines.add(l, keptLines)
	}
}

// Lines returns the lines that are kept, by time.
func (r *Recent) Lines() []Line {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Concat(r.lines.lines, r.faults.lines)
	slices.SortStableFunc(all, func(a, b Line) int { return a.At.Compare(b.At) })
	return all
}

// textOf writes a message with its arguments as hclog does, but for a trailing name without a
// value.
func textOf(message string, args []any) string {
	var b strings.Builder
	b.WriteString(message)
	for i := 0; i+1 < len(args) && b.Len() < maxLine; i += 2 {
		sep := " "
		if i == 0 {
			sep = ": "
		}
		v := args[i+1]
		if f, ok := v.(hclog.Format); ok && len(f) > 0 {
			if form, ok := f[0].(string); ok {
				v = fmt.Sprintf(form, f[1:]...)
			}
		}
		fmt.Fprintf(&b, "%s%v=%v", sep, args[i], v)
	}
	s := strings.ToValidUTF8(b.String(), "?")
	if len(s) > maxLine {
		s = strings.ToValidUTF8(s[:maxLine], "") + "..."
	}
	return s
}
