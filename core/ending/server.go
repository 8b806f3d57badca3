package ending

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// ServerFailure returns a failure for the error with which a side of startup ended. joined is true
// if startup was over by then, so that others may know why the server went away. name returns the
// name of a client.
func ServerFailure(err error, joined bool, name func(wire.ClientRank) string) *Failure {
	text := err.Error()
	marker := startup.ErrFailed.Error() + ": "
	if i := strings.LastIndex(text, marker); i >= 0 && errors.Is(err, startup.ErrFailed) {
		f := RemoteFailure(WithNames(text[i+len(marker):], name))
		switch {
		case strings.HasPrefix(f.Text, startup.ErrTimeout.Error()):
			f.Status = StatusTimeout // the server's own limit, which applies to all sites
		case strings.HasPrefix(f.Text, startup.ErrBusy.Error()):
			f.Status, f.Remote, f.Cause = StatusTimeout, false, err // longer than this site may wait
			f.Text += ": somebody keeps it so with connections that say nothing; its log has their addresses"
		case strings.HasPrefix(f.Text, startup.ErrAuth.Error()):
			f.Status, f.Remote = StatusNode, false // the server refused this site
			f.Text += ": the site and the server must have the same key, or the same auth block"
		}
		return f
	}
	f := &Failure{Text: WithNames(text, name), Status: StatusNode, Precedence: Decided, Cause: err}
	switch {
	case errors.Is(err, startup.ErrTimeout):
		f.Status = StatusTimeout
	case errors.Is(err, startup.ErrLost):
		f.Status = StatusRemote
		if joined {
			f.Precedence = Lost
		}
	}
	return f
}

// How the server's texts name clients: one with its address, or a set of them. They are compiled
// where a server has ended, and not as each process starts.
const (
	oneClientText = `\bclient (\d+) \(([^)]*:\d+)\)`
	clientSetText = `\bclients \{([\d,]+)\} of \d+`
)

// WithNames inserts the sites' names where a text of the server, which does not know them, names
// clients. name returns the name of a client.
func WithNames(text string, name func(wire.ClientRank) string) string {
	oneClient, clientSet := regexp.MustCompile(oneClientText), regexp.MustCompile(clientSetText)
	list := func(ranks string) string {
		var names []string
		for s := range strings.SplitSeq(ranks, ",") {
			if c, err := strconv.Atoi(s); err == nil {
				names = append(names, name(wire.ClientRank(c)))
			}
		}
		return strings.Join(names, ", ")
	}
	text = oneClient.ReplaceAllStringFunc(text, func(s string) string {
		m := oneClient.FindStringSubmatch(s)
		return list(m[1]) + " at " + m[2]
	})
	return clientSet.ReplaceAllStringFunc(text, func(s string) string {
		return list(clientSet.FindStringSubmatch(s)[1])
	})
}
