// Package watchdog ends fuzzing that hangs. Go's fuzzer takes an input that never
// comes to its end for one that is slow, and passes when its time is over; if the
// process dies instead, the fuzzer writes the input down.
package watchdog

import (
	"fmt"
	"time"
)

// Limit is the maximum time that one input may take. The slowest ones need milliseconds.
const Limit = 10 * time.Second

// Start watches over one input until stop is called: a fuzz target begins with
//
//	defer watchdog.Start()()
//
// If it takes longer than Limit, the process panics.
func Start() (stop func()) { return start(Limit, expire) }

func start(limit time.Duration, expire func()) (stop func()) {
	t := time.AfterFunc(limit, expire)
	return func() { t.Stop() }
}

func expire() { panic(fmt.Sprintf("watchdog: one input has taken more than %v", Limit)) }
