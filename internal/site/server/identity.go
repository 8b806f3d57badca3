package server

import (
	"fmt"
	"slices"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/rendezvous"
	"github.com/openimpi/impi/internal/routes"
)

// OwnServerFor returns what a site and its server do in addition to IMPI: TLS, and resumed
// connections. It returns nil for the server of another MPI. embedded means that the server is in
// the site's own node.
func OwnServerFor(job *config.Job, site config.Site, embedded bool, log hclog.Logger) (*rendezvous.OwnServer, error) {
	if site.Server.Foreign {
		if site.Auth.Keyed {
			log.Warn("the job's key goes to the server in clear: server_foreign = true", "server", site.Server.Address)
		}
		return nil, nil
	}
	id, err := certificatesOf(site)
	if err != nil {
		return nil, err
	}
	optional := site.Server.TLS == config.TLSOptional
	own := &rendezvous.OwnServer{
		Identity:   id,
		Unverified: optional,
		NeedTLS:    site.Server.Ours || embedded || site.Server.TLS == config.TLSRequired || id != nil && !optional,
	}
	if slices.ContainsFunc(site.Routes, func(r config.Route) bool { return r.Resume }) {
		own.Resume = routes.ResumeLimit(job)
	}
	return own, nil
}

func certificatesOf(site config.Site) (*rendezvous.Identity, error) {
	id, err := Certificates(site)
	if err != nil {
		return nil, fmt.Errorf("site %s: %w", site.Name, err)
	}
	return id, nil
}

// Certificates loads the certificates of a site, which it uses with its server and between its
// hosts. They are those of one of its transports; nil if none has any.
func Certificates(site config.Site) (*rendezvous.Identity, error) {
	t, ok := certified(site)
	if !ok {
		return nil, nil
	}
	id, err := rendezvous.LoadIdentity(t.SettingMap(), t.Dir)
	if err != nil {
		return nil, fmt.Errorf("transport %q: %w", t.Name, err)
	}
	return id, nil
}

func hasCertificates(site config.Site) bool {
	_, ok := certified(site)
	return ok
}

// certified returns the transport whose certificates the site uses with the server: the first that
// always encrypts, or else the first that has any.
func certified(site config.Site) (config.Transport, bool) {
	var found []config.Transport
	for _, t := range site.Transports {
		set := t.SettingMap()
		if t.Encrypted() && set["cert"] != nil && set["key"] != nil && set["ca"] != nil {
			found = append(found, t)
		}
	}
	if len(found) == 0 {
		return config.Transport{}, false
	}
	first := slices.IndexFunc(found, func(t config.Transport) bool { return t.Known.Encrypts })
	return found[max(first, 0)], true
}
