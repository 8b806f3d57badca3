package kernel

import (
	"fmt"
	"iter"
	"runtime/debug"
	"time"
)

// Task is a coroutine: it runs until it sleeps or ends, and nothing else runs
// meanwhile.
type Task struct {
	Name string

	k      *Kernel
	next   func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	timer  *Timer // its next turn
	woken  bool   // Wake came and Park has not seen it
	parked bool   // in Park
	killed bool
	ended  bool
	where  string // what it waits for, for people
}

// killed unwinds a task that is not to go on.
type killed struct{}

// wakeMax is the longest that a task waits for its turn once it may run.
const wakeMax = 5 * time.Microsecond

// Go makes a task of f, which begins soon. When f returns, or the task ends
// itself by Kill, ended is called, if it is not nil.
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

// turn lets the task run, and tells whether it wants to go on.
func (t *Task) turn() (more bool) {
	t.k.current = t
	defer func() { t.k.current = nil }()
	_, more = t.next()
	return more
}

// Panic is what Run panics with when a task has.
type Panic struct {
	Task  string
	Value any
	Stack []byte // of the task
}

// String has all of it.
func (p *Panic) String() string { return fmt.Sprintf("%s: %v\n%s", p.Task, p.Value, p.Stack) }

// Park gives control away until Wake, or returns at once if that was called
// since the last Park. why says what the task waits for.
func (t *Task) Park(why string) {
	if !t.woken {
		t.parked, t.where = true, why
		t.switchAway()
		t.parked, t.where = false, ""
	}
	t.woken = false
}

// Sleep gives control away for d. Wake does not shorten it.
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

// Wake lets Park return soon.
func (t *Task) Wake() {
	if t.woken || t.ended {
		return
	}
	t.woken = true
	if t.parked {
		t.timer.Reset(t.k.Between(0, wakeMax))
	}
}

// Kill ends the task, wherever it is: what it has deferred still runs, but it
// does not get to sleep again. If the task itself calls it, it does not return,
// and ended is called; otherwise ended is not called.
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

// Running tells whether it is the task's turn.
func (t *Task) Running() bool { return t.k.current == t }

// Ended tells whether the task has returned or was killed.
func (t *Task) Ended() bool { return t.ended }

// Where says what the task waits for; empty if it does not wait.
func (t *Task) Where() string { return t.where }
