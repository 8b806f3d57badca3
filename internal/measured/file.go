// Package measured keeps how far sites are from each other between jobs, in a file that people may
// edit.
package measured

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/openimpi/impi/plugins/sdk/support/plainfile"
)

// most bounds the file, in bytes. A pair of sites takes some hundred, so many jobs fit.
const most = 1 << 20

const longest = time.Hour

// mostRate is the highest rate that is believed, in Mb/s.
const mostRate = 1e9

// File has the measured distances between sites, as they are kept on disk.
type File struct {
	Pairs []Pair `json:"pairs"`
}

// Pair is what was measured between two sites.
type Pair struct {
	A    string    `json:"a"` // the site whose name comes first
	B    string    `json:"b"`
	RTT  float64   `json:"rtt_ms"`
	Rate float64   `json:"rate_mbit_s,omitempty"` // of one stream; 0: not known
	At   time.Time `json:"measured,omitzero"`
}

// FileError describes what is wrong with a file.
type FileError struct {
	Path    string
	Line    int // 0: the whole file
	Problem string
}

// Remedy returns what the user can do.
func (e *FileError) Remedy() string {
	return "mend it, or remove the file and measure again while a job runs: impi-node links -measure -keep " + e.Path
}

// Where names the file, with the line if it is known.
func (e *FileError) Where() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d", e.Path, e.Line)
	}
	return e.Path
}

func (e *FileError) Error() string {
	return fmt.Sprintf("round trips between sites: %s: %s; %s", e.Where(), e.Problem, e.Remedy())
}

// Read reads the file. A missing file counts as an empty one. Its errors are FileErrors.
func Read(path string) (f File, err error) {
	text, problem := read(path)
	line := 0
	if problem == "" {
		line, problem = f.parse(text)
	}
	if problem != "" {
		return File{}, &FileError{path, line, problem}
	}
	return f, nil
}

// read reads a file; both results are empty if there is none. It refuses what is no regular file,
// as reading that might never end.
func read(path string) (text []byte, problem string) {
	text, err := plainfile.Read(path, most)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ""
	} else if err != nil {
		return nil, reason(err)
	}
	return text, ""
}

func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return err.Error()
}

// Add adds a measurement between two sites, and returns their pair. The newest measurement counts.
func (f *File) Add(a, b string, rtt time.Duration, rate float64, at time.Time) Pair {
	p := Pair{A: min(a, b), B: max(a, b), RTT: rtt.Seconds() * 1e3, Rate: math.Round(rate*8/1e3) / 1e3, At: at.UTC().Truncate(time.Second)}
	i := slices.IndexFunc(f.Pairs, func(q Pair) bool { return q.A == p.A && q.B == p.B })
	if i >= 0 {
		f.Pairs[i] = p
		return p
	}
	f.Pairs = append(f.Pairs, p)
	slices.SortFunc(f.Pairs, func(p, q Pair) int { return cmp.Or(cmp.Compare(p.A, q.A), cmp.Compare(p.B, q.B)) })
	return p
}

// Worst returns the longest round trip and the lowest rate in bytes per second between a site and
// any other of the file; 0: not known.
func (f *File) Worst(site string) (rtt time.Duration, rate int64) {
	for _, p := range f.Pairs {
		if p.A != site && p.B != site || p.A == p.B {
			continue
		}
		rtt = max(rtt, time.Duration(p.RTT*float64(time.Millisecond)))
		if r := int64(p.Rate * 1e6 / 8); r > 0 && (rate == 0 || r < rate) {
			rate = r
		}
	}
	return rtt, rate
}

// Write replaces the file at once, so that a job that begins reads the old one or the new one.
func (f *File) Write(path string) error {
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	t, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("keep round trips between sites: %w", err)
	}
	defer os.Remove(t.Name())
	_, err = t.Write(append(text, '\n'))
	if err = errors.Join(err, t.Close()); err == nil {
		err = os.Chmod(t.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(t.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("keep round trips between sites: %w", err)
	}
	return nil
}
