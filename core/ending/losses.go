package ending

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/openimpi/impi/core/wire"
)

// Losses are the lost procs that a job continues without. The zero value has none. Only one
// goroutine may use it at a time.
type Losses struct {
	all   []wire.Lost // in the order in which they became known; no rank is in two of them
	procs int
}

// Add records that procs are lost, and returns the new losses: runs of ranks that were not lost
// before.
func (l *Losses) Add(x wire.Lost) (news []wire.Lost) {
	for r := x.First; r <= x.Last; r++ {
		switch n := len(news); {
		case l.Has(r):
		case n > 0 && news[n-1].Last == r-1:
			news[n-1].Last = r
		default:
			part := x
			part.First, part.Last = r, r
			news = append(news, part)
		}
	}
	for _, part := range news {
		l.procs += int(part.Last-part.First) + 1
	}
	l.all = append(l.all, news...)
	return news
}

// Has reports whether a proc is lost.
func (l *Losses) Has(r wire.WorldRank) bool {
	return slices.ContainsFunc(l.all, func(x wire.Lost) bool { return x.First <= r && r <= x.Last })
}

// HasHostOf reports whether a proc is lost with its host.
func (l *Losses) HasHostOf(r wire.WorldRank) bool {
	return slices.ContainsFunc(l.all, func(x wire.Lost) bool { return x.Host && x.First <= r && r <= x.Last })
}

// All returns the losses, in the order in which they became known.
func (l *Losses) All() []wire.Lost { return l.all }

// ContinuedText appends to the text of a loss of some procs that the job continued, and how many
// procs were lost in all.
func ContinuedText(text string, lost, of int) string {
	if lost <= of {
		return text + "; the job went on without it"
	}
	return fmt.Sprintf("%s; %d procs are lost in all; the job went on without them", text, lost)
}

// Failure returns the failure of a job that has continued without the lost procs and has met no
// other failure. It returns nil if no proc is lost.
func (l *Losses) Failure() *Failure {
	if len(l.all) == 0 {
		return nil
	}
	first := l.all[0]
	f := &Failure{Text: ContinuedText(first.Text, l.procs, int(first.Last-first.First)+1), Status: int(first.Status), Precedence: Died, Lost: l.procs}
	f.Status = cmp.Or(f.Status, StatusRemote)
	return f
}
