// Package wireuptest has what tests need that are the node of a proc.
package wireuptest

import (
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/wireup"
)

// Split converts a job's Procs to the form that a node sends: the table, and the job's Views. The
// cards in the table name the procs' machines and nothing else.
func Split(job *wireup.Job) (table startup.Procs) {
	job.Views = nil
	for r, p := range job.Procs {
		x := startup.ProcInfo{ID: p.Identity(), Client: p.Client, Host: p.Node}
		if p.Machine != "" {
			x.Card = []byte("impi-card/1 node=" + p.Machine)
		}
		table.Add(x)
		job.Views = wireup.AddView(job.Views, wire.WorldRank(r), p)
	}
	return table
}
