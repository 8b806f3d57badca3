package node

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/lifetime"
	"github.com/openimpi/impi/internal/transcript"
)

// full is a writer on a disk that is full until there is room.
type full struct {
	mu   sync.Mutex
	room bool
	to   *transcript.Writer
}

func (f *full) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.room {
		return 0, syscall.ENOSPC
	}
	return f.to.Write(p)
}

// TestLogOnAFullDisk: the job goes on, and the log says what it lacks once it can.
func TestLogOnAFullDisk(t *testing.T) {
	later := &full{to: &transcript.Writer{}}
	job := testJob("ring", 1, 1)
	for i := range job.Sites {
		job.Sites[i].Log.Level = "debug"
	}
	all := start(t, job, func(o *Options) {
		o.Logger = nil // the node's own, to stderr
		if o.Site.Name == "alpha" {
			o.Stderr = later
		} else {
			o.Stderr = openFull(t)
		}
	})
	all[0].out.Line(t, "[0] pid ")
	later.mu.Lock()
	later.room = true
	later.mu.Unlock()
	wantNone(t, all)
	for _, want := range []string{"not written here: ", "the log is incomplete", "no space left on device"} {
		if log := later.to.String(); !strings.Contains(log, want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
}

func openFull(t *testing.T) *os.File {
	t.Helper()
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestLogThatNobodyReads ends no job either.
func TestLogThatNobodyReads(t *testing.T) {
	wantNone(t, start(t, testJob("ring", 1, 1), func(o *Options) { o.Logger, o.Stderr = nil, unread{} }))
}

// TestOutputOnAFullDisk: nobody is stopped, and in the end the site whose output is
// not whole says so, also in its log, and fails. The other has done all it should.
func TestOutputOnAFullDisk(t *testing.T) {
	all := start(t, testJob("ring", 1, 1), func(o *Options) {
		if o.Site.Name == "alpha" {
			o.Stdout = openFull(t)
		}
	})
	f := end(all)
	if f[0] == nil || f[0].Status != ending.StatusNode || !strings.Contains(f[0].Text, "the output of site alpha is incomplete: not written: ") || !strings.Contains(f[0].Text, "no space left on device") {
		t.Errorf("alpha: %v", f[0])
	} else if log := all[0].err.String(); strings.Count(log, f[0].Text) != 1 {
		t.Errorf("alpha's log does not say %q once:\n%s", f[0].Text, log)
	}
	if log := all[1].err.String(); f[1] != nil || strings.Contains(log, "is incomplete") {
		t.Errorf("beta: %v\n%s", f[1], log)
	}
}

// TestTraceOnAFullDisk is said once with what to do, and changes nothing else.
func TestTraceOnAFullDisk(t *testing.T) {
	job := route(testJob("ring", 1, 1), config.Route{Prefer: []string{"tcp"}, Direct: true})
	dir := t.TempDir()
	if err := os.Symlink("/dev/full", filepath.Join(dir, "packets-0.txt")); err != nil {
		t.Fatal(err)
	}
	for i := range job.Sites {
		job.Sites[i].Log.Trace = filepath.Join(dir, "packets-%r.txt")
	}
	all := start(t, job)
	wantNone(t, all)
	log := all[0].err.String()
	for _, want := range []string{"a trace cannot be written: the job goes on", "bytes=0 reason=", "no space left on device", "remedy=\"write the name of a regular file"} {
		if strings.Count(log, want) != 1 {
			t.Errorf("alpha's log does not say %q once:\n%s", want, log)
		}
	}
	if log := all[1].err.String(); strings.Contains(log, "a trace") {
		t.Errorf("beta's trace is whole:\n%s", log)
	}
}

// TestRefusedConnectionsDoNotFillTheLog: what strangers can cause as often as they
// like is said some times, and then counted.
func TestRefusedConnectionsDoNotFillTheLog(t *testing.T) {
	job := testJob("block", 1)
	job.Sites[0].Server.Clients = 2 // so that the server goes on taking connections
	job.Limits.Start = patience
	all := startSites(t, job, job.Sites, func(o *Options) { o.Logger = nil })
	all[0].err.Await("waiting for", 1)
	address := all[0].n.server.Address().String()
	const many = 500
	for range many {
		nc, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := nc.Write([]byte("no client of IMPI")); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, nc) // the server's answer, which ends it
		nc.Close()
	}
	all[0].hurry()
	all[0].cancel(lifetime.Interrupt{Signal: syscall.SIGINT})
	<-all[0].done
	log := all[0].err.String()
	// 40 in ten seconds, of which a busy machine may need several for so many.
	if n := strings.Count(log, "connection refused: "); n == 0 || n >= many || !strings.Contains(log, "connection refused … and ") {
		t.Errorf("%d of %d connections have a line of their own:\n%s", n, many, log)
	}
}
