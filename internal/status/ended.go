package status

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/plugins/host"
)

const (
	awaitLimit  = 20 * time.Second       // of a question how a job ends, which is then asked again
	awaitPause  = time.Second            // before it is asked again, if it was answered at once
	answerLimit = 500 * time.Millisecond // for the answer about a job that is gone
)

// Ended is a job that is gone, and how it has ended.
type Ended struct {
	Name    string `json:"name"`
	ID      string `json:"id,omitempty"`
	Known   bool   `json:"known"`             // how it has ended is known
	Site    string `json:"site,omitempty"`    // whose node has told it
	Failure string `json:"failure,omitempty"` // empty, and Known: it has ended in order
}

func (e *Ended) String() string {
	switch {
	case e.Failure != "":
		return fmt.Sprintf("job %s has failed: %s", e.Name, e.Failure)
	case e.Known:
		return fmt.Sprintf("job %s has ended in order", e.Name)
	}
	return fmt.Sprintf("job %s is gone; how it has ended is not known here: its launcher's output and exit status say it", e.Name)
}

// follower asks the nodes of jobs how these end. A node tells it only to those that ask when it
// ends.
type follower struct {
	await func(ctx context.Context, id string) *links.Ending
	jobs  map[string]*followed // by jobName
	ended []Ended
}

type followed struct {
	last Job                // as the last look has found it
	how  chan *links.Ending // has it once it is told
	stop context.CancelFunc
}

func newFollower(await func(ctx context.Context, id string) *links.Ending) *follower {
	return &follower{await: await, jobs: make(map[string]*followed)}
}

func (o *options) follow() *follower {
	return newFollower(func(ctx context.Context, id string) *links.Ending {
		return links.AwaitEnding(ctx, host.RunDirs(o.RunDir, o.UID), id)
	})
}

// update takes the jobs of a look, and returns all that earlier looks have found and that are gone.
func (f *follower) update(jobs []Job) []Ended {
	here := make(map[string]bool)
	for i := range jobs {
		j := &jobs[i]
		name := jobName(j)
		if f.jobs[name] == nil {
			f.jobs[name] = f.begin(j.ID)
		}
		f.jobs[name].last, here[name] = *j, true
	}
	for _, name := range slices.Sorted(maps.Keys(f.jobs)) {
		x := f.jobs[name]
		if here[name] {
			continue
		}
		delete(f.jobs, name)
		if x.last.ID != "" || !slices.ContainsFunc(jobs, func(j Job) bool { return j.Name == x.last.Name }) { // else it has its ID now
			f.ended = append(f.ended, x.conclude())
		}
		x.stop()
	}
	return slices.Clone(f.ended)
}

func (f *follower) close() {
	for _, x := range f.jobs {
		x.stop()
	}
}

func (f *follower) begin(id string) *followed {
	x := &followed{how: make(chan *links.Ending, 1)}
	ctx, stop := context.WithCancel(context.Background())
	x.stop = stop
	if id == "" { // its nodes cannot be told from those of other jobs that start
		return x
	}
	go func() {
		for ctx.Err() == nil {
			begun := time.Now()
			limited, cancel := context.WithTimeout(ctx, awaitLimit)
			how := f.await(limited, id)
			cancel()
			if how != nil {
				x.how <- how
				return
			}
			if time.Since(begun) < awaitPause {
				select {
				case <-ctx.Done():
				case <-time.After(awaitPause):
				}
			}
		}
	}()
	return x
}

// conclude says how a job that is gone has ended: as a node has told it, or as the last look shows
// it.
func (x *followed) conclude() Ended {
	e := Ended{Name: x.last.Name, ID: x.last.ID}
	limit := answerLimit
	if e.ID == "" {
		limit = 0
	}
	select {
	case how := <-x.how:
		e.Known, e.Site, e.Failure = true, how.Site, how.Failure
	case <-time.After(limit):
		e.Failure = failuresIn(&x.last)
		e.Known = e.Failure != ""
	}
	return e
}

// failuresIn returns which procs a look has found that had ended with a failure.
func failuresIn(j *Job) string {
	var list []string
	for i := range j.Sites {
		for k := range j.Sites[i].Ranks {
			if p := &j.Sites[i].Ranks[k]; p.State == links.ProcEnded && p.Ended != "" && p.Ended != "exited with status 0" && p.Ended != "ended" {
				list = append(list, label(p)+" "+p.Ended)
			}
		}
	}
	return strings.Join(list, ", ")
}
