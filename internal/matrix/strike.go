package matrix

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/openimpi/impi/internal/peers"
)

var progress = map[string]*regexp.Regexp{
	"ring":        regexp.MustCompile(`ring: round \d+ of`),
	"heat2d":      regexp.MustCompile(`heat2d: step +\d+ of`),
	"wordcount":   regexp.MustCompile(`wordcount: counted \d+ times of`),
	"collectives": regexp.MustCompile(`(?m)^\[\w+\] ` + mark + `$`), // and not in the log, which has command lines
	"large":       regexp.MustCompile(`(?m)^\[\w+\] ` + mark + `$`),
}

// What the nodes log, at level debug, about faults.
var (
	pluginDown  = regexp.MustCompile(`plugin is down`)
	pluginReady = regexp.MustCompile(`plugin is ready`)
	lostLink    = regexp.MustCompile(`is lost and dialled again`)
	resumedLink = regexp.MustCompile(`a (?:direct link|channel) is resumed`)
)

// moreProgress is how many lines of progress must follow the end of a fault: a single line
// may have been on its way since before.
const moreProgress = 2

type blow struct {
	at   int // bytes that had been printed before
	hits int // plugins killed, or connections reset
	err  error
}

var errTooShort = errors.New("the program did not outlast the fault")

// mended returns the position in the log after a blow at which its effect is repaired:
// links that were lost are resumed, and plugins that were killed run again. -1: not yet.
func (c Cell) mended(after string, hits int) int {
	first, then, times := pluginDown, pluginReady, hits
	if c.breaks() {
		first, then, times = lostLink, resumedLink, 1
	}
	at := first.FindStringIndex(after)
	if at == nil {
		return -1
	}
	all := then.FindAllStringIndex(after[at[1]:], times)
	if len(all) < times {
		return -1
	}
	return at[1] + all[times-1][1]
}

func (c Cell) waits() bool { return c.Program == "collectives" || c.Program == "large" }

// brokenEnd matches how both sites report that a link which cannot be resumed is lost.
var brokenEnd = regexp.MustCompile(`(?i)rank \d+.*\b(?:rank|site|link)\b`)

// ended checks that a job which cannot survive its fault ended by itself, because of that
// fault, and that it said so. err is the launcher's result.
func (c Cell) ended(log string, b blow, err error) error {
	var exit *exec.ExitError
	switch {
	case b.err != nil:
		return fmt.Errorf("the fault could not be brought about: %w", b.err)
	case err == nil:
		return fmt.Errorf("%w: it ended well", errTooShort)
	case !errors.As(err, &exit) || exit.ExitCode() <= 0:
		return fmt.Errorf("it did not end by itself: %w", err)
	case !brokenEnd.MatchString(log[b.at:]):
		return fmt.Errorf("nobody said between which ranks: %w", err)
	}
	return nil
}

// outlasted checks that a fault hit a running program, which went on after everything was
// repaired.
func (c Cell) outlasted(log string, b blow) error {
	if c.Fault == NoFault {
		return nil
	}
	after := log[b.at:]
	i := c.mended(after, b.hits)
	switch {
	case i < 0:
		return fmt.Errorf("%w: it ended before %d hits were felt and mended", errTooShort, b.hits)
	case c.waits(): // it was told to stop after that
	case len(progress[c.Program].FindAllString(after[i:], moreProgress)) < moreProgress:
		return fmt.Errorf("%w: no progress of it was seen after the repair", errTooShort)
	}
	if !strings.Contains(after[i:], successTexts[c.Program]) {
		return fmt.Errorf("%w: its last words came before the repair", errTooShort)
	}
	return nil
}

// strike causes the cell's fault once the program is at work, and tells a program that
// waits for it to stop once all is repaired.
func (r *Runner) strike(ctx context.Context, c Cell, t Transport, pid int, out *peers.Output, dir string) (b blow) {
	if c.Fault == NoFault {
		return b
	}
	if !out.Until(ctx, progress[c.Program].MatchString) {
		return blow{err: errors.New("the program was never at work")}
	}
	b.at = len(out.String())
	if c.Fault == PluginKilled {
		b.hits, b.err = killPlugins(pid)
	} else {
		var mend func()
		if b.hits, mend, b.err = cut(pid, c, t); b.err == nil {
			if t.Datagrams { // lost datagrams are noticed only after a while
				out.Until(ctx, func(s string) bool { return lostLink.MatchString(s[b.at:]) })
			}
			mend()
		}
	}
	if b.err == nil && c.waits() {
		out.Until(ctx, func(s string) bool { return c.mended(s[b.at:], b.hits) >= 0 })
	}
	return blow{b.at, b.hits, cmp.Or(b.err, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))}
}
