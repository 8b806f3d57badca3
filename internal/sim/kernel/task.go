package kernel

import (
	"fmt"
	"iter"
	"runtime/debug"
	"time"
)

// Task is a coroutine: it runs until it sleeps or ends, and nothing else runs in the meantime.
type Task struct {
	Name string

	k      *Kernel
	next   func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	timer  *Timer // its next turn
	woken  bool   // Wake was called since the last Park
	parked bool   // in Park
	killed bool
	ended  bool
	where  string // what the task waits for
}

// killed is the panic that unwinds a task that must end.
type killed struct{}

// wakeMax is how long a task waits for its turn at most once it may run.
const wakeMax = 5 * time.Microsecond

// Go creates a task that runs f and begins soon. When f returns, or the task calls Kill on itself,
// ended is called, unless it is nil.
func (k *Kernel) Go(name string, f func(*Task), ended func()) *Task {
	t := &Task{Name: name, k: k}
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		defer func() {
			if r := recover(); r != nil {
				if _, ok := r.(killed); !ok {
					panic(&Panic{t.Name, r, debug.Stack()})
				}
			}
		}()
		f(t)
	})
	t.timer = k.After(k.Between(0, wakeMax), func() {
		if more := t.turn(); !more && !t.ended {
			t.ended = true
			if ended != nil {
				ended()
			}
		}
	})
	k.tasks = append(k.tasks, t)
	return t
}

// turn lets the task run, and reports whether it wants to go on.
func (t *Task) turn() (more bool) {
	t.k.current = t
	defer func() { t.k.current = nil }()
	_, more = t.next()
	return more
}

// Panic is the panic of Run when a task has panicked.
type Panic struct {
	Task  string
	Value any
	Stack []byte // of the task
}

// String returns the task's name, the value that it panicked with, and its stack.
func (p *Panic) String() string { return fmt.Sprintf("%s: %v\n%s", p.Task, p.Value, p.Stack) }

// Park gives up control until Wake. It returns at once if Wake was called since the last Park. why
// describes what the task waits for.
func (t *Task) Park(why string) {
	if !t.woken {
		t.parked, t.where = true, why
		t.switchAway()
		t.parked, t.where = false, ""
	}
	t.woken = false
}

// Sleep gives up control for d. Wake does not shorten it.
func (t *Task) Sleep(d time.Duration, why string) {
	t.where = why
	t.timer.Reset(d)
	t.switchAway()
	t.where = ""
}

func (t *Task) switchAway() {
	if t.killed || !t.yield(struct{}{}) {
		panic(killed{})
	}
}

// Wake makes Park return soon.
func (t *Task) Wake() {
	if t.woken || t.ended {
		return
	}
	t.woken = true
	if t.parked {
		t.timer.Reset(t.k.Between(0, wakeMax))
	}
}

// Kill ends the task, wherever it is: its deferred calls still run, but it cannot sleep again. If
// the task itself calls Kill, it does not return, and ended is called; otherwise ended is not
// called.
func (t *Task) Kill() {
	if t.ended {
		return
	}
	if t.k.current == t {
		t.killed = true
		panic(killed{})
	}
	t.killed, t.ended = true, true
	t.timer.Stop()
	t.stop()
}

// Running reports whether the task is the one that runs.
func (t *Task) Running() bool { return t.k.current == t }

// Ended reports whether the task has returned or was killed.
func (t *Task) Ended() bool { return t.ended }

// Where returns what the task waits for, or "" if it does not wait.
func (t *Task) Where() string { return t.where }
