// Package transcript keeps what processes and logs write, for tests that read it or wait for it.
package transcript

import (
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Writer keeps the bytes that are written to it. The zero Writer is empty and can be used. Several
// goroutines may use it at once.
type Writer struct {
	mu    sync.Mutex
	text  []byte
	more  chan struct{} // closed when there is more; nil: no goroutine waits
	ended bool
}

// Write implements io.Writer. It never fails.
func (w *Writer) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, b...)
	w.wake()
	return len(b), nil
}

// Close ends the text: nothing more will be written, and all waits for more end.
func (w *Writer) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.wake()
}

func (w *Writer) wake() {
	if w.more != nil {
		close(w.more)
		w.more = nil
	}
}

// String returns what has been written so far.
func (w *Writer) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.text)
}

// Until waits until found returns true for what has been written so far. It returns false if the
// Writer was closed before that.
func (w *Writer) Until(found func(text string) bool) bool {
	for {
		text, more := w.now()
		if found(text) {
			return true
		}
		if more == nil {
			return false
		}
		<-more
	}
}

// now returns the text, and a channel that is closed when there is more; that is nil if nothing
// more will come.
func (w *Writer) now() (string, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return string(w.text), nil
	}
	if w.more == nil {
		w.more = make(chan struct{})
	}
	return string(w.text), w.more
}

// Await waits until text has been written a number of times. It returns false if the Writer was
// closed before that.
func (w *Writer) Await(text string, times int) bool {
	return w.Until(func(all string) bool { return strings.Count(all, text) >= times })
}

// Line waits for a whole line that starts with prefix and returns the rest of it. The test ends if
// the Writer is closed before that.
func (w *Writer) Line(t testing.TB, prefix string) (rest string) {
	t.Helper()
	if !w.Until(func(text string) (ok bool) {
		for line := range strings.Lines(text) {
			if rest, ok = strings.CutPrefix(line, prefix); ok && strings.HasSuffix(rest, "\n") {
				return true
			}
		}
		return false
	}) {
		t.Fatalf("no line starts with %q:\n%s", prefix, w)
	}
	return strings.TrimSuffix(rest, "\n")
}

// Number is like Line, for a number.
func (w *Writer) Number(t testing.TB, prefix string) int {
	t.Helper()
	n, err := strconv.Atoi(w.Line(t, prefix))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
