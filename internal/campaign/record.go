// Package campaign keeps what the long searches for faults have covered and found: simulated seeds,
// failed system calls, fuzzing and killed processes. The searches go on over months in pieces of
// some minutes; docs/campaign.json has what is done, and docs/campaign.md is the page that is made
// of it.
package campaign

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/openimpi/impi/internal/provenance"
)

// Kinds of searches.
const (
	Seeds   = "seeds"   // of the simulator
	Worlds  = "worlds"  // the simulator's seeds of several jobs that meet
	Survive = "survive" // the simulator's seeds of two jobs that go on without lost procs
	Calls   = "calls"   // system calls that fail
	Fuzz    = "fuzz"    // seconds of fuzzing
	Kills   = "kills"   // jobs of which processes are killed
)

// Kinds lists the kinds of searches in the order of the page.
var Kinds = []string{Seeds, Worlds, Survive, Calls, Fuzz, Kills}

// Record contains all searches that were done.
type Record struct {
	Pieces   []Piece          `json:"pieces"`
	Targets  map[string]Total `json:"targets,omitempty"` // of fuzzing
	Findings []Finding        `json:"findings,omitempty"`

	// Position is the key of the last point of Calls that was tried in this round.
	Position uint64 `json:"position,omitempty"`
}

// Piece is the part of a search that was done at one commit on one day.
type Piece struct {
	Kind string           `json:"kind"`
	Made provenance.Stamp `json:"made"`
	// From and To are the range, To not included: of seeds their numbers; of other kinds From is 0
	// and To only a number.
	From    uint64 `json:"from"`
	To      uint64 `json:"to"`
	Of      uint64 `json:"of,omitempty"`     // number of all, if known
	Missed  uint64 `json:"missed,omitempty"` // number of Calls that were not made in their runs
	Seconds uint64 `json:"seconds"`          // duration
	Found   int    `json:"found"`
}

// Total is the sum of all fuzzing of a target.
type Total struct {
	Seconds uint64 `json:"seconds"`
	Inputs  uint64 `json:"inputs"`
}

// Finding is something that went wrong.
type Finding struct {
	Kind  string           `json:"kind"`
	What  string           `json:"what"` // a seed, a point or a target, with which it can be run again
	Made  provenance.Stamp `json:"made"`
	Text  string           `json:"text"`
	Ended string           `json:"ended,omitempty"` // how it was fixed, or why it is none; empty: open
}

// Read reads a record; it returns an empty one if the file does not exist.
func Read(path string) (*Record, error) {
	r := &Record{}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(b, r)
	}
	if err == nil {
		err = r.check()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

func (r *Record) check() error {
	for _, p := range r.Pieces {
		if !slices.Contains(Kinds, p.Kind) || p.From > p.To {
			return fmt.Errorf("%+v is no piece of a search", p)
		}
	}
	return nil
}

// Write writes the record atomically: the file is complete even if Write is interrupted.
func (r *Record) Write(path string) error {
	b, err := json.MarshalIndent(r, "", " ")
	if err == nil {
		err = os.WriteFile(path+".new", append(b, '\n'), 0o644)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	return err
}

// ErrTwo is wrapped if another run keeps its record in the same folder.
var ErrTwo = errors.New("another campaign runs: wait for its end, or use another folder for -data")

// Lock keeps other runs from the folder of a record until unlock is called, or the process ends:
// each run would overwrite what the other has written.
func Lock(path string) (unlock func(), err error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		dir.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrTwo
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return func() { dir.Close() }, nil
}

// Next returns the number at which a kind continues: after the highest number that was done.
func (r *Record) Next(kind string) (next uint64) {
	for _, p := range r.Pieces {
		if p.Kind == kind {
			next = max(next, p.To)
		}
	}
	return next
}

// Count returns how much of a kind was done, and the time. Numbers that were run twice count twice:
// at another commit they test something else.
func (r *Record) Count(kind string) (n, seconds uint64) {
	for _, p := range r.Pieces {
		if p.Kind == kind {
			n, seconds = n+p.To-p.From, seconds+p.Seconds
		}
	}
	return n, seconds
}

// Add adds a piece: to the last one of its kind, if it continues that piece.
func (r *Record) Add(p Piece) {
	if p.From == p.To {
		return
	}
	for i := len(r.Pieces) - 1; i >= 0; i-- {
		last := &r.Pieces[i]
		if last.Kind != p.Kind {
			continue
		}
		if last.Made == p.Made && last.To == p.From {
			last.To, last.Of = p.To, p.Of
			last.Seconds, last.Missed, last.Found = last.Seconds+p.Seconds, last.Missed+p.Missed, last.Found+p.Found
			return
		}
		break
	}
	r.Pieces = append(r.Pieces, p)
}

// Find adds a finding. A finding that is known already is opened again. unknown reports whether it
// is new.
func (r *Record) Find(f Finding) (unknown bool) {
	i := slices.IndexFunc(r.Findings, func(x Finding) bool { return x.Kind == f.Kind && x.What == f.What })
	if i < 0 {
		r.Findings = append(r.Findings, f)
		return true
	}
	unknown = r.Findings[i].Ended != ""
	r.Findings[i] = f
	return unknown
}

// End records how a finding was fixed.
func (r *Record) End(what, how string) error {
	i := slices.IndexFunc(r.Findings, func(x Finding) bool { return x.Kind+" "+x.What == what })
	if i < 0 {
		return fmt.Errorf("there is no finding %q: write its kind, a blank and what it is of", what)
	}
	r.Findings[i].Ended = how
	return nil
}

// Open returns the findings that are not fixed.
func (r *Record) Open() []Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return f.Ended != "" })
}
