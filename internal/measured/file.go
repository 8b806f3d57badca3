// Package measured keeps how far sites are from each other between jobs, in a file that people may edit.
package measured

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// most bounds the file, in bytes: some hundred for each pair of sites of many jobs.
const most = 1 << 20

// longest is the longest round trip that is believed.
const longest = time.Hour

// File is what is known.
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

// Read reads the file. One that is not there is empty.
func Read(path string) (f File, err error) {
	in, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return File{}, nil
	}
	if err != nil {
		return File{}, fmt.Errorf("round trips between sites: %w", err)
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && len(text) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	for _, p := range f.Pairs {
		if err == nil && (p.RTT < 0 || p.RTT > longest.Seconds()*1e3 || p.Rate < 0 || p.Rate > 1e9) {
			err = fmt.Errorf("sites %q and %q: %v ms and %v Mb/s are impossible", p.A, p.B, p.RTT, p.Rate)
		}
	}
	if err != nil {
		return File{}, fmt.Errorf("round trips between sites: %s: %w; remove the file and measure again: impi-node links -measure -keep %s", path, err, path)
	}
	return f, nil
}

// Add adds what was measured between two sites. The newest counts.
func (f *File) Add(a, b string, rtt time.Duration, rate float64, at time.Time) {
	p := Pair{A: min(a, b), B: max(a, b), RTT: rtt.Seconds() * 1e3, Rate: math.Round(rate*8/1e3) / 1e3, At: at.UTC().Truncate(time.Second)}
	i := slices.IndexFunc(f.Pairs, func(q Pair) bool { return q.A == p.A && q.B == p.B })
	if i >= 0 {
		f.Pairs[i] = p
		return
	}
	f.Pairs = append(f.Pairs, p)
	slices.SortFunc(f.Pairs, func(p, q Pair) int { return cmp.Or(cmp.Compare(p.A, q.A), cmp.Compare(p.B, q.B)) })
}

// Worst returns the longest round trip and the lowest rate in bytes per second between a site and any
// other of the file; 0: not known.
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
