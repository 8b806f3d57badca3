package node

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
)

// withTransport gives all sites a transport with settings for each.
func withTransport(job *config.Job, name string, settings func(site string) map[string]any) *config.Job {
	for i := range job.Sites {
		t := builtin(name)
		if settings != nil {
			for k, v := range settings(job.Sites[i].Name) {
				t.Settings = append(t.Settings, config.Setting{Name: k, Value: v})
			}
		}
		var others []config.Transport
		for _, x := range job.Sites[i].Transports {
			if x.Name != name {
				others = append(others, x)
			}
		}
		job.Sites[i].Transports = append(others, t)
	}
	return job
}

// secured gives all sites a transport that encrypts.
func secured(t *testing.T, job *config.Job, name string) *config.Job {
	t.Helper()
	ca := pkitest.Authority(t)
	more := map[string]any(nil)
	if name == "tcp" {
		more = map[string]any{"tls": true}
	}
	return withTransport(job, name, func(site string) map[string]any { return pkitest.Site(t, site, ca, ca, more) })
}

var channelLine = regexp.MustCompile(`channel: .*from=(\d+) to=(\d+) transport=(\S*) data_plane=(\S*)`)

// channelsOf returns what the channels of the sites are, as the log has it.
func channelsOf(all []*running) (kinds []string) {
	for _, r := range all {
		for _, m := range channelLine.FindAllStringSubmatch(r.err.String(), -1) {
			kinds = append(kinds, m[3]+" "+m[4])
		}
	}
	return kinds
}

// Sites whose procs talk through their agents have channels by the transport that
// the route prefers, whatever its data plane; others have IMPI's.
func TestChannelsByTheRoutesTransport(t *testing.T) {
	for _, c := range []struct {
		name   string
		route  config.Route
		secure string
		want   string
	}{
		{"shm", config.Route{Prefer: []string{"shm", "tcp"}}, "", "shm peer-shm"},
		{"unix", config.Route{Prefer: []string{"unix", "tcp"}}, "", "unix fd"},
		{"tcp", config.Route{Prefer: []string{"tcp", "shm"}}, "", "tcp fd"},
		{"tcp by a ring", config.Route{Prefer: []string{"tcp"}, DataPlane: []string{"ring"}}, "", "tcp ring"},
		{"tcp with TLS by a ring", config.Route{Prefer: []string{"tcp"}, DataPlane: []string{"ring"}}, "tcp", "tcp ring"},
		{"tcp with TLS by a stream", config.Route{Prefer: []string{"tcp"}, DataPlane: []string{"stream"}}, "tcp", "tcp stream"},
		{"quic", config.Route{Prefer: []string{"quic"}}, "quic", "quic ring"},
		{"resumable shm", config.Route{Prefer: []string{"shm"}, Resume: true}, "", "shm peer-shm"},
		{"resumable quic", config.Route{Prefer: []string{"quic"}, Resume: true}, "quic", "quic ring"},
		{"direct links", config.Route{Prefer: []string{"shm"}, Direct: true}, "", "tcp fd"},
	} {
		t.Run(c.name, func(t *testing.T) {
			job := route(withTransport(testJob("long and short", 1, 1), "shm", nil), c.route)
			if c.secure != "" {
				secured(t, job, c.secure)
			}
			all := start(t, job)
			wantNone(t, all)
			if got := channelsOf(all); len(got) != 2 || got[0] != c.want || got[1] != c.want {
				t.Errorf("channels %q, want %q on both sides", got, c.want)
			}
		})
	}
}

// Three sites with more procs, by agents whose channels are memory.
func TestManyTalkThroughMemory(t *testing.T) {
	all := start(t, route(withTransport(testJob("all", 2, 2, 1), "shm", nil), config.Route{Prefer: []string{"shm"}}))
	wantNone(t, all)
	if got := channelsOf(all); fmt.Sprint(got) != "["+strings.Repeat("shm peer-shm ", 5)+"shm peer-shm]" {
		t.Errorf("%q", got)
	}
}
