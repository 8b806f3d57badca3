package ui

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/openimpi/impi/internal/links"
)

const (
	awaitLimit = 20 * time.Second       // maximum wait for an answer about a job's end; then the page, or the node, is asked again
	awaitPause = time.Second            // minimum time between two questions that are answered at once
	drainLimit = 500 * time.Millisecond // maximum time to answer pages when the server ends
	mostEnds   = 16                     // jobs whose ends are awaited, or kept
)

// endings await the ends of jobs for the pages, which ask again and again. A node says how it ends
// only to those who are asking at that moment: so nodes are asked all the time, by two overlapping
// questions, however many pages there are, and the answer is kept.
type endings struct {
	await AwaitEndFunc
	life  context.Context
	close context.CancelFunc

	slots   chan struct{} // has an element for each page that waits
	entered chan struct{} // has an element if a page has asked

	mu      sync.Mutex
	all     map[string]*ending // by the job's ID
	renewal time.Time          // when a page was told last to ask again
}

type ending struct {
	how   *links.Ending // set before over is closed
	over  chan struct{}
	asked time.Time // when a page asked last
}

func newEndings(await AwaitEndFunc) *endings {
	e := &endings{await: await, slots: make(chan struct{}, connections/2), entered: make(chan struct{}, 1), all: make(map[string]*ending)}
	e.life, e.close = context.WithCancel(context.Background())
	return e
}

// of returns the ending of a job, which is awaited from now on, or nil if there are too many.
func (e *endings) of(id string) *ending {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.all[id]
	if x == nil {
		if len(e.all) == mostEnds {
			maps.DeleteFunc(e.all, func(_ string, y *ending) bool { return y.how != nil })
		}
		if len(e.all) == mostEnds {
			return nil
		}
		x = &ending{over: make(chan struct{})}
		e.all[id] = x
		go e.follow(id, x, 0)
		go e.follow(id, x, awaitLimit/2)
	}
	x.asked = time.Now()
	return x
}

// follow asks the nodes how a job ends, until one says it or no page wants to know any more.
func (e *endings) follow(id string, x *ending, later time.Duration) {
	for pause := later; e.sleep(x, pause); pause = awaitPause {
		for e.wanted(id, x) {
			begun := time.Now()
			ctx, cancel := context.WithTimeout(e.life, awaitLimit)
			how := e.await(ctx, id)
			cancel()
			if how != nil {
				e.told(x, how)
				return
			}
			if time.Since(begun) < awaitPause {
				break
			}
		}
		if !e.wanted(id, x) {
			return
		}
	}
}

// sleep waits for a time, and reports whether the end is still awaited then.
func (e *endings) sleep(x *ending, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-x.over:
	case <-e.life.Done():
	}
	return false
}

// wanted reports whether pages ask for an ending that is not known. One that nobody wants is
// forgotten.
func (e *endings) wanted(id string, x *ending) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x.how != nil || e.life.Err() != nil {
		return false
	}
	if time.Since(x.asked) <= 2*awaitLimit {
		return true
	}
	if e.all[id] == x {
		delete(e.all, id)
	}
	return false
}

func (e *endings) told(x *ending, how *links.Ending) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x.how == nil {
		x.how = how
		close(x.over)
	}
}

// serve answers when the job ends, with how it has ended, or after a while without that.
func (e *endings) serve(w http.ResponseWriter, r *http.Request) {
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	default:
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	select {
	case e.entered <- struct{}{}:
	default:
	}
	x := e.of(r.URL.Query().Get("job"))
	if x == nil {
		http.Error(w, "too many jobs are looked at", http.StatusServiceUnavailable)
		return
	}
	var how *links.Ending
	select {
	case <-x.over:
		how = x.how
	case <-time.After(awaitLimit):
	case <-r.Context().Done():
	}
	b, err := json.Marshal(how)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	_, _ = w.Write(b)
	_ = http.NewResponseController(w).Flush() // Close may follow
	if how == nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.renewal = time.Now()
	}
}

// drain waits until the pages have been told, including one that is about to ask again.
func (e *endings) drain() {
	limit := time.After(drainLimit)
	e.mu.Lock()
	again := time.Since(e.renewal) < awaitPause && len(e.slots) == 0
	e.mu.Unlock()
	if again {
		select {
		case <-e.entered: // of earlier
		default:
		}
		select {
		case <-e.entered:
		case <-limit:
			return
		}
	}
	for range cap(e.slots) {
		select {
		case e.slots <- struct{}{}:
		case <-limit:
			return
		}
	}
}
