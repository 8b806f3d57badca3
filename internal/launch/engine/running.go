package engine

import (
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/openimpi/impi/internal/launch"
)

type running struct {
	remoteCommand
	s        *Started
	process  *launch.Process
	over     chan struct{} // closed by close: its standard input ends
	closed   bool          // over is closed; under the lock of Started
	filters  []*filter     // two for each of serves: stdout and stderr
	messages tail          // messages of the local command itself, if lines are labelled
	mu       sync.Mutex
	ready    int // number of its machines that run the program
}

// isReady counts one more program as running, and reports whether all programs of the command are.
func (r *running) isReady() bool {
	r.ready++
	return r.ready == len(r.serves)
}

func (r *running) outputs(mark string) (stdout, stderr io.Writer) {
	both := [2][]io.Writer{}
	for range r.serves {
		for k := range both {
			f := newFilter(mark, func(f *filter, what said) {
				if what.word == "here" {
					r.found(f, what.number, k)
				} else if f.machine >= 0 {
					r.s.told(r, f.machine, what)
				}
			})
			r.filters = append(r.filters, f)
			both[k] = append(both[k], f)
		}
	}
	if !r.labelled {
		return both[0][0], both[1][0]
	}
	others := locked{&r.mu, &r.messages}
	return &labels{machines: both[0], others: others}, &labels{machines: both[1], others: others}
}

// found sets the machine of a filter, whose k-th output it is.
func (r *running) found(f *filter, machine, k int) {
	if f.machine >= 0 || !slices.Contains(r.serves, machine) {
		return
	}
	f.machine, f.out = machine, io.Discard
	if r.s.command.Output == nil {
		return
	}
	stdout, stderr := r.s.command.Output(machine)
	if out := [...]io.Writer{stdout, stderr}[k]; out != nil {
		f.out = out
	}
}

type locked struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// feed writes the script to the command's standard input, which close ends. If the command does not
// read it, the command is ended sooner or later, and then the write fails.
func (r *running) feed(w *os.File, script string) {
	_, _ = io.WriteString(w, script)
	<-r.over
	_ = w.Close()
}

func (r *running) close() {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.closeInput()
}

func (r *running) closeInput() {
	if !r.closed {
		r.closed = true
		close(r.over)
	}
}

// watch waits for the end of the command. Programs whose end was not reported are lost.
func (r *running) watch() {
	defer r.s.watchers.Done()
	<-r.process.Done()
	r.close()
	for _, f := range r.filters {
		f.Close()
	}
	for _, i := range r.serves {
		r.s.lost(i, func() string { return r.reason(i) })
	}
}

func (r *running) reason(machine int) string {
	messages := string(r.messages.b)
	for _, f := range r.filters {
		if f.machine < 0 || f.machine == machine {
			messages += string(f.messages.b)
		}
	}
	messages = strings.TrimSpace(messages)
	if r.explain != nil {
		if text := r.explain(messages); text != "" {
			return text
		}
	}
	text := r.args[0] + " " + r.process.Exit().String()
	if messages == "" {
		return text + " and has printed nothing"
	}
	return text + " and has printed: " + messages
}

// endIfIdle ends the command if all its programs have ended. s is locked.
func (r *running) endIfIdle() {
	for _, i := range r.serves {
		if !r.s.places[i].ended {
			return
		}
	}
	r.closeInput()
	time.AfterFunc(linger, r.kill)
}

// reached reports whether any program can still be asked to end.
func (r *running) reached() bool {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return slices.ContainsFunc(r.serves, func(i int) bool { return r.s.places[i].up })
}

// kill ends the local command: by SIGTERM, after which srun ends what it has started, and then by
// SIGKILL.
func (r *running) kill() {
	_ = r.process.Signal(syscall.SIGTERM)
	time.AfterFunc(linger, func() { _ = r.process.Signal(syscall.SIGKILL) })
}
