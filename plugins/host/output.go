package host

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
)

// maxLine is the longest line of a plugin that is logged in one piece, in bytes.
const maxLine = 64 << 10

// tail keeps the last lines of a plugin's output for the error of its death. Of a panic it
// keeps the first lines, which say more than the end of the stack.
type tail struct {
	mu    sync.Mutex
	lines []string
	panic string // first line of a panic
}

const (
	tailLines = 8
	tailWidth = 400
)

func (t *tail) add(line string) {
	if len(line) > tailWidth {
		line = line[:tailWidth] + "..."
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.panic == "" && dying(line) {
		t.panic, t.lines = line, nil
	}
	if len(t.lines) == tailLines {
		if t.panic != "" {
			return
		}
		t.lines = append(t.lines[:0], t.lines[1:]...)
	}
	t.lines = append(t.lines, line)
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "\n")
}

// panicLine is the line with which a panic began, if there was one.
func (t *tail) panicLine() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.panic
}

// dying reports whether a line is the first of Go's message about a crash.
func dying(line string) bool {
	return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
}

// eachLine calls f with each line of r, without its line end. Lines longer than maxLine
// come in pieces.
func eachLine(r io.Reader, f func(line []byte)) {
	br := bufio.NewReaderSize(r, maxLine)
	for {
		line, _, err := br.ReadLine()
		if len(line) > 0 {
			f(line)
		}
		if err != nil {
			return
		}
	}
}

// logLine logs a line of a plugin's error output at its own level. It understands JSON of
// hclog, slog, zap and logrus, and text that begins with a level in brackets. Other text is
// logged at debug, or as an error once the process is panicking.
func logLine(l hclog.Logger, line string, panicking *bool) {
	if strings.HasPrefix(line, "{") {
		if level, msg, args, ok := parseEntry(line); ok {
			l.Log(level, msg, args...)
			return
		}
	}
	for _, level := range []hclog.Level{hclog.Trace, hclog.Debug, hclog.Info, hclog.Warn, hclog.Error} {
		if rest, ok := strings.CutPrefix(line, "["+strings.ToUpper(level.String())+"]"); ok {
			l.Log(level, strings.TrimSpace(rest))
			return
		}
	}
	if *panicking = *panicking || dying(line); *panicking {
		l.Error(line)
		return
	}
	l.Debug(line)
}

// parseEntry parses a JSON log line. Its other fields become arguments, sorted.
func parseEntry(line string) (level hclog.Level, msg string, args []any, ok bool) {
	var fields map[string]any
	if json.Unmarshal([]byte(line), &fields) != nil {
		return 0, "", nil, false
	}
	level = hclog.LevelFromString(takeString(fields, "@level", "level"))
	msg = takeString(fields, "@message", "msg", "message")
	if level == hclog.NoLevel || msg == "" {
		return 0, "", nil, false
	}
	takeString(fields, "@timestamp", "time", "ts", "timestamp")
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		args = append(args, strings.TrimPrefix(name, "@"), fields[name])
	}
	return level, msg, args, true
}

// takeString removes and returns the first of the named fields that exists.
func takeString(fields map[string]any, names ...string) string {
	for _, name := range names {
		if v, ok := fields[name]; ok {
			delete(fields, name)
			return fmt.Sprint(v)
		}
	}
	return ""
}

// lineWriter logs what go-plugin's stdio service delivers, in pieces of any size: output of
// the plugin's own os.Stdout and os.Stderr after the handshake.
type lineWriter struct {
	log  hclog.Logger
	mu   sync.Mutex
	part []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.part = append(w.part, p...)
	var calm bool
	for {
		i := strings.IndexByte(string(w.part), '\n')
		if i < 0 && len(w.part) < maxLine {
			return len(p), nil
		}
		if i < 0 {
			i = len(w.part) - 1
		}
		logLine(w.log, strings.TrimRight(string(w.part[:i+1]), "\r\n"), &calm)
		w.part = append(w.part[:0], w.part[i+1:]...)
	}
}
