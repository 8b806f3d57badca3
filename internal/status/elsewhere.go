package status

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/openimpi/impi/internal/links"
)

// WaitsForOtherJobs reports that all procs of a job wait for others, some of them for procs of
// other worlds, of which the nodes of this job know nothing: whether that is a deadlock depends on
// those.
type WaitsForOtherJobs struct {
	Ranks  []int    `json:"ranks"`            // that wait for other worlds
	Worlds []string `json:"worlds,omitempty"` // those that these ranks have links to, with the job's name if it is among those asked
}

// findElsewhere returns nil if a proc does not wait, was not asked, or none waits for other worlds.
// names has the names of jobs by their worlds.
func findElsewhere(j *links.Job, names map[string]string) *WaitsForOtherJobs {
	if ends(j) {
		return nil
	}
	var e WaitsForOtherJobs
	size, told := 0, 0
	for i := range j.Sites {
		size += j.Sites[i].Procs
		for k := range j.Sites[i].Ranks {
			p := &j.Sites[i].Ranks[k]
			switch told++; {
			case over(p):
			case p.State != links.ProcRunning || !still(p.Blocked):
				return nil
			case waitsForOtherWorlds(p.Blocked):
				e.Ranks = append(e.Ranks, p.Rank)
			case !stuck(p.Blocked):
				return nil
			}
		}
	}
	if len(e.Ranks) == 0 || told != size {
		return nil
	}
	for i := range j.WorldLinks {
		l := &j.WorldLinks[i]
		if l.State == links.StateEnded || !slices.Contains(e.Ranks, l.Local) {
			continue
		}
		w := links.ShortWorld(l.World)
		if name := names[l.World]; name != "" {
			w += ", job " + name
		}
		if !slices.Contains(e.Worlds, w) {
			e.Worlds = append(e.Worlds, w)
		}
	}
	return &e
}

// String returns a text for people, the rest of a sentence that begins with "whether that is a
// deadlock depends on".
func (e *WaitsForOtherJobs) String() string {
	worlds := "other worlds"
	switch {
	case len(e.Worlds) == 1:
		worlds = "world " + e.Worlds[0]
	case len(e.Worlds) > 1:
		worlds = "worlds " + strings.Join(e.Worlds, " and ")
	}
	wait := "waits"
	if len(e.Ranks) > 1 {
		wait = "wait"
	}
	return fmt.Sprintf("%s, for which %s %s", worlds, ranksOf(e.Ranks), wait)
}

func writeElsewhere(w io.Writer, e *WaitsForOtherJobs) {
	if e != nil {
		fmt.Fprintf(w, "\n  all procs wait for others; whether that is a deadlock depends on %s\n", oneLine(e.String()))
	}
}
