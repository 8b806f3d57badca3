package ending

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/blame"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/node/routes"
)

// ByServer makes a failure of the error with which a side of startup ended.
func ByServer(job *config.Job, err error) *Failure {
	text := err.Error()
	marker := startup.ErrFailed.Error() + ": "
	if i := strings.LastIndex(text, marker); i >= 0 && errors.Is(err, startup.ErrFailed) {
		f := ToldBy(withSites(job, text[i+len(marker):]))
		switch {
		case strings.HasPrefix(f.Text, startup.ErrTimeout.Error()):
			f.Status = StatusTimeout // the server's own limit, which is everybody's
		case strings.HasPrefix(f.Text, startup.ErrBusy.Error()):
			f.Status, f.Remote, f.Cause = StatusTimeout, false, err // for as long as we may wait
			f.Text += ": somebody keeps it so with connections that say nothing; its log has their addresses"
		case strings.HasPrefix(f.Text, startup.ErrAuth.Error()):
			f.Status, f.Remote = StatusNode, false // it is us whom the server refused
			f.Text += ": the site and the server must have the same key, or the same auth block"
		}
		return f
	}
	f := &Failure{Text: withSites(job, text), Status: StatusNode, Weight: blame.Decided, Cause: err}
	switch {
	case errors.Is(err, startup.ErrTimeout):
		f.Status = StatusTimeout
	case errors.Is(err, startup.ErrLost):
		f.Status = StatusRemote
	}
	return f
}

// How the server names clients: one with its address, or a set of them.
var (
	oneClient = regexp.MustCompile(`\bclient (\d+) \(([^)]*:\d+)\)`)
	clientSet = regexp.MustCompile(`\bclients \{([\d,]+)\} of \d+`)
)

// withSites puts the sites' names where the server, which does not know them,
// speaks of clients.
func withSites(job *config.Job, text string) string {
	text = oneClient.ReplaceAllStringFunc(text, func(s string) string {
		m := oneClient.FindStringSubmatch(s)
		return siteList(job, m[1]) + " at " + m[2]
	})
	return clientSet.ReplaceAllStringFunc(text, func(s string) string {
		return siteList(job, clientSet.FindStringSubmatch(s)[1])
	})
}

// siteList names the clients of a list of ranks.
func siteList(job *config.Job, ranks string) string {
	var names []string
	for s := range strings.SplitSeq(ranks, ",") {
		if c, err := strconv.Atoi(s); err == nil {
			names = append(names, routes.ClientName(job, wire.ClientRank(c)))
		}
	}
	return strings.Join(names, ", ")
}
