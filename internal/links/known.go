package links

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
)

// KnownName is the file in a node's run directory with what is known of its job from the moment in
// which the job ran: a node that does not answer has procs, and a server, too.
const KnownName = "job.json"

const maxKnown = 1 << 20

// Known is the content of the file KnownName.
type Known struct {
	Sites  []Site      `json:"sites"`
	Procs  []KnownProc `json:"procs"` // of the node
	Server *JobServer  `json:"server,omitempty"`
}

// KnownProc is a proc that the node runs, by which it is found although the node does not answer.
type KnownProc struct {
	Rank int `json:"rank"`
	PID  int `json:"pid"`
}

// Encode returns the contents of the file, or nil if they would be too long.
func (k *Known) Encode() ([]byte, error) {
	b, err := json.Marshal(k)
	if err != nil || len(b) > maxKnown {
		return nil, err
	}
	return b, nil
}

// readKnown reads the file in a run directory; nil: there is none that can be read.
func readKnown(dir string) *Known {
	f, err := os.Open(filepath.Join(dir, KnownName))
	if err != nil {
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(f, maxKnown))
	_ = f.Close()
	k := &Known{}
	if err != nil || json.Unmarshal(b, k) != nil {
		return nil
	}
	return k
}

// sitesOf are the sites of a job, as a node tells that answers, or else as one knew that does not.
func sitesOf(found []FoundNode) []Site {
	for _, f := range found {
		if f.Node != nil && len(f.Node.Sites) > 0 {
			return f.Node.Sites
		}
	}
	for _, f := range found {
		if f.known != nil {
			return f.known.Sites
		}
	}
	return nil
}

// remember takes what is known of a node from before, as it does not answer.
func (p *SiteState) remember(k *Known) {
	if k == nil {
		return
	}
	if p.pids == nil {
		p.pids = make(map[int]int)
	}
	for _, x := range k.Procs {
		p.pids[x.Rank] = x.PID
	}
	if k.Server != nil && p.Server == nil {
		s := *k.Server
		s.Unknown = true
		p.Server = &s
	}
}
