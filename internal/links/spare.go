package links

import (
	"fmt"
	"slices"
	"time"
)

// Spare is a spare site of a job: it has no procs but those that are spawned there.
type Spare struct {
	Name    string    `json:"name"`
	State   string    `json:"state"`           // absent, waiting, taken or lost, as core/spawn has them
	Since   time.Time `json:"since,omitzero"`  // of State, as a node of the job has seen it; zero: always
	Hosts   []string  `json:"hosts,omitempty"` // addresses
	Procs   int       `json:"procs,omitempty"` // that were spawned there, or are about to be
	Why     string    `json:"why,omitempty"`   // why it is lost
	Here    bool      `json:"here,omitempty"`  // its node is on this machine, and has answered
	PID     int       `json:"pid,omitempty"`   // of that node
	Parent  int       `json:"parent,omitempty"`
	Problem string    `json:"problem,omitempty"` // why its node on this machine has not answered
}

// MaxSpares is the maximum number of spare sites that are used of another node's answer.
const MaxSpares = 32

// isSpare reports whether a node is that of a spare site, which has no rank among the job's
// clients.
func (a *NodeInfo) isSpare() bool { return a.Client < 0 }

// better are the states, the one that tells most first: a site that one node of the job cannot
// reach may be there for another one.
var better = []string{"taken", "waiting", "lost", "absent"}

// spares are the spare sites of a job, in the order in which they are known, each as described by
// the node that reports the best state. A spare site's own node says whether it has procs.
func spares(found []FoundNode) (list []Spare) {
	at := func(name string) *Spare {
		i := slices.IndexFunc(list, func(s Spare) bool { return s.Name == name })
		if i < 0 {
			list, i = append(list, Spare{Name: name, State: "absent"}), len(list)
		}
		return &list[i]
	}
	for _, f := range found {
		if f.Node == nil || f.About.isSpare() {
			continue
		}
		for _, s := range f.Node.Spares {
			x := at(s.Name)
			if slices.Index(better, s.State) < slices.Index(better, x.State) || x.Since.IsZero() && x.State == s.State {
				s.Here, s.PID, s.Parent, s.Problem = x.Here, x.PID, x.Parent, x.Problem
				*x = s
			}
		}
	}
	for _, f := range found {
		if !f.About.isSpare() || f.About.Number > 0 {
			continue
		}
		x := at(f.About.Site)
		x.Here, x.PID, x.Parent = !f.Forwarded, f.About.PID, f.About.Parent
		if f.Err != nil {
			x.Problem = f.Err.Error()
		}
		if f.Node != nil && len(f.Node.Spares) > 0 {
			own := f.Node.Spares[0]
			x.State, x.Procs, x.Why = own.State, own.Procs, ""
		}
	}
	return list
}

// Text returns the state of a spare site in a line.
func (s *Spare) Text(now time.Time) string {
	text := "spare site " + s.Name + "  " + s.State
	switch {
	case s.State == "absent":
		text = "spare site " + s.Name + "  has not come"
	case s.Procs == 1:
		text += ": 1 proc was spawned there"
	case s.Procs > 1:
		text += fmt.Sprintf(": %d procs were spawned there", s.Procs)
	}
	if !s.Since.IsZero() {
		text += fmt.Sprintf(", since %s, %s ago", s.Since.Format(time.TimeOnly), age(s.Since, now))
	}
	if s.Why != "" {
		text += ": " + s.Why
	}
	if s.PID > 0 {
		text += fmt.Sprintf("  node %d", s.PID)
	}
	if s.Problem != "" {
		text += ": " + s.Problem
	}
	return text
}
