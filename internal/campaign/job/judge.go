package job

import (
	"fmt"
	"regexp"
	"strings"
)

// Outcome describes how a job has ended.
type Outcome struct {
	Status int      // of the launcher
	Hung   bool     // the job had not ended within Limit
	Output string   // of all its processes
	Left   []string // processes and files
	Killed bool     // the launcher was killed, which therefore has no status and prints nothing
}

var (
	crashed = regexp.MustCompile(`(?m)^(?:\[\d+\] )?(panic: .*|fatal error: .*|goroutine \d+ .*\[.*|SIG[A-Z]+: .*)`)
	// What Go's runtime says when it cannot have a thread, its memory or its poller.
	runtimes = regexp.MustCompile(`(?m)^(?:\[\d+\] )?(runtime: (epoll|eventfd|netpoll|failed to create new OS thread).*|fatal error: runtime: .*)`)
	stamp    = regexp.MustCompile(`^(\[\d+\] )?(\d{4}-\d\d-\d\dT\S+ )?`)
	spoken   = regexp.MustCompile(`^(\[ERROR\]|impi-node: |ring: |error: |\S+\.hcl:[\d:]* error: )`)
	vague    = regexp.MustCompile(`(?i)context deadline exceeded|context canceled|exit status \d+|impi-node|error|\W|site|the job`)
)

// Wrong returns what is wrong with an outcome: a job must end with the right result and status 0,
// or with another status and a message that names something, and must leave nothing behind. It
// returns "" if all is well.
func (o *Outcome) Wrong() string {
	switch {
	case o.Hung:
		return fmt.Sprintf("it hangs: it has not ended within %v", Limit)
	case crashed.MatchString(o.Output) && !runtimes.MatchString(o.Output):
		return "a process has crashed: " + crashed.FindStringSubmatch(o.Output)[1]
	case o.Killed && len(o.Left) == 0:
		return ""
	case o.Status < 0 && !o.Killed:
		return "the launcher was ended by a signal"
	case o.Status == 0 && !strings.Contains(o.Output, successText):
		return "it has status 0 without a result"
	case o.Status > 0 && o.Words() == "":
		return fmt.Sprintf("it has status %d and does not say why", o.Status)
	case len(o.Left) > 0:
		return "it has left behind: " + strings.Join(o.Left, ", ")
	}
	return ""
}

// Words returns the first line of the job's output that explains its failure.
func (o *Outcome) Words() string {
	for line := range strings.Lines(o.Output) {
		line = strings.TrimSpace(stamp.ReplaceAllString(line, ""))
		if !spoken.MatchString(line) {
			continue
		}
		if !strings.Contains(line, successText) && !strings.Contains(line, " us per hop") && len(vague.ReplaceAllString(line, "")) > 8 {
			return line
		}
	}
	return ""
}
