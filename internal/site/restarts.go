package site

import (
	"slices"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/plugins/host"
)

// triesWhileResuming is how many times at least a plugin that died too often is restarted while the
// links that were lost with it are dialled again.
const triesWhileResuming = 3

// restarts says how a transport's plugin is restarted. Where a route resumes its links, the pause
// after too many deaths must be shorter than the time for resuming: otherwise the links would be
// given up although the plugin could soon make them again.
func restarts(job *config.Job, site *config.Site, transport string) (r host.Restart) {
	resumes := slices.ContainsFunc(append(slices.Clone(site.Routes), site.RouteTo("*")), func(r config.Route) bool {
		return r.Resume && slices.Contains(r.Prefer, transport)
	})
	if resumes {
		r.Cooldown = max(min(host.DefaultCooldown, routes.ResumeLimit(job)/triesWhileResuming), time.Millisecond)
	}
	return r
}
