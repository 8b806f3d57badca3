package matrix

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// successTexts are what a program prints at its end if everything that it has received was
// right. The exit status alone does not prove that.
var successTexts = map[string]string{
	"ring":        "as it must be",
	"heat2d":      "one process computes the same, bit for bit",
	"wordcount":   "equal to a sequential count",
	"collectives": "matrix-check: every result of collectives was right",
	"large":       "matrix-check: every result of large was right",
}

// What the nodes log, at level debug, about the links of a job.
var (
	madeLink    = regexp.MustCompile(`direct link: .*\brank=(\d+) peer=(\d+) transport=(\S+) data_plane=(\S+)`)
	madeChannel = regexp.MustCompile(`channel: .*\bfrom=(\d+) to=(\d+) transport=(\S+) data_plane=(\S+)`)
	launched    = regexp.MustCompile(`the launcher of the site's MPI is started`)
	noLink      = regexp.MustCompile(`no direct link: packets go through the agents.*`)
)

var errUnproven = errors.New("the job ended well, but proves nothing")

// prove checks that a job that has ended well did what its cell says: the program has
// checked its results, and the bytes have used the right links.
func (c Cell) prove(log string, t Transport) error {
	if words := successTexts[c.Program]; words == "" || !strings.Contains(log, words) {
		return fmt.Errorf("%w: %s did not print %q", errUnproven, c.Program, words)
	}
	// Procs of native sites have no links inside of a site, so all links that are made are of the
	// cell.
	if n := len(launched.FindAllString(log, -1)); n != len(t.Natives) {
		return fmt.Errorf("%w: launchers of %d sites were started, of %d", errUnproven, n, len(t.Natives))
	}
	links, channels := madeLink.FindAllStringSubmatch(log, -1), madeChannel.FindAllStringSubmatch(log, -1)
	if c.byAgents() {
		if len(links) > 0 {
			return fmt.Errorf("%w: %q", errUnproven, links[0][0])
		}
		return c.used(channels, t)
	}
	if lost := noLink.FindString(log); lost != "" {
		return fmt.Errorf("%w: %q", errUnproven, lost)
	}
	return c.used(links, t)
}

// used checks that there were links and that all of them are of the kind that they must be; if
// there are several machines, within them and between them.
func (c Cell) used(made [][]string, t Transport) error {
	if len(made) == 0 {
		return fmt.Errorf("%w: no link was made", errUnproven)
	}
	kinds, seen := c.kinds(t), [2]bool{}
	for _, m := range made {
		where := between
		if !c.byAgents() && machineOf(m[1]) == machineOf(m[2]) {
			where = within
		}
		if seen[where] = true; (kind{m[3], m[4]}) != kinds[where] {
			return fmt.Errorf("%w: the link of %s and %s is %s by %s", errUnproven, m[1], m[2], m[3], m[4])
		}
	}
	if c.onMachines() && !c.byAgents() && seen != [2]bool{true, true} {
		return fmt.Errorf("%w: there are no links within machines, or none between them", errUnproven)
	}
	return nil
}

// Places of links, see Cell.kinds.
const (
	within = iota
	between
)

func machineOf(rank string) int {
	r, _ := strconv.Atoi(rank) // the expression matches only digits
	return r / procsPerMachine
}
