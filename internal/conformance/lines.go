package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
)

type lines struct {
	mu     sync.Mutex
	part   []byte
	list   []string
	more   chan struct{} // closed when list grows or nothing more comes
	closed bool
}

// Maximum number of lines that are kept, and of bytes of one.
const (
	kept    = 10000
	maxLine = 64 << 10
)

func newLines() *lines { return &lines{more: make(chan struct{})} }

// Write takes output in pieces of any size. It never fails.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.part = append(l.part, p...)
	for {
		i := bytes.IndexByte(l.part[:min(len(l.part), maxLine)], '\n')
		if i < 0 && len(l.part) < maxLine {
			return len(p), nil
		}
		if i < 0 {
			i = maxLine - 1
		}
		l.add(strings.TrimRight(string(l.part[:i+1]), "\r\n"))
		l.part = append(l.part[:0], l.part[i+1:]...)
	}
}

// add keeps a line. The caller holds mu.
func (l *lines) add(line string) {
	if len(l.list) < kept {
		l.list = append(l.list, line)
	}
	close(l.more)
	l.more = make(chan struct{})
}

func (l *lines) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.part) > 0 {
		l.add(string(l.part))
		l.part = nil
	}
	l.closed = true
	close(l.more)
	l.more = make(chan struct{})
}

var errSilent = errors.New("the process ended without a line")

func (l *lines) first(ctx context.Context) (string, error) {
	for {
		l.mu.Lock()
		list, more, closed := l.list, l.more, l.closed
		l.mu.Unlock()
		switch {
		case len(list) > 0:
			return list[0], nil
		case closed:
			return "", errSilent
		}
		select {
		case <-more:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

// levels are those of a log line, the least severe first.
var levels = []string{"trace", "debug", "info", "warn", "error"}

// levelOf finds the level that a line states, as a node does. It is empty for plain text. JSON
// without a valid level is a mistake: its author believes that it has one.
func levelOf(line string) (level string, mistaken bool) {
	for _, l := range levels {
		if strings.HasPrefix(line, "["+strings.ToUpper(l)+"]") {
			return l, false
		}
	}
	if !strings.HasPrefix(line, "{") {
		return "", false
	}
	var fields map[string]any
	if json.Unmarshal([]byte(line), &fields) != nil {
		return "", false
	}
	level = strings.ToLower(firstText(fields, "@level", "level"))
	if level == "warning" {
		level = "warn"
	}
	return level, !slices.Contains(levels, level) || firstText(fields, "@message", "msg", "message") == ""
}

func firstText(fields map[string]any, names ...string) string {
	for _, name := range names {
		if s, ok := fields[name].(string); ok {
			return s
		}
	}
	return ""
}
