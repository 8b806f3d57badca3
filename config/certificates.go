package config

import "slices"

// certificateSettings are the settings for a site's certificate files in transports that
// encrypt: quic, tcp, and plugins that use the same names.
var certificateSettings = []string{"cert", "key", "ca"}

// IsCertificate reports whether a setting of a transport is about the site's certificate, or about
// the certificates that it accepts.
func IsCertificate(setting string) bool {
	return slices.Contains(certificateSettings, setting) || setting == "peers"
}

// HasCertificates reports whether the file gives the transport certificates or turns its
// encryption on.
func (t Transport) HasCertificates() bool {
	return slices.ContainsFunc(t.Settings, func(s Setting) bool {
		path, _ := s.Value.(string)
		return slices.Contains(certificateSettings, s.Name) && path != "" || s.Name == "tls" && s.Value == true
	})
}

// closes reports whether a route is closed: the site has certificates for a transport that
// the route prefers, so nothing may leave the machine unencrypted unless the file says
// require_tls = false (docs/decisions/0034-certificates-close-routes.md).
func (s Site) closes(r Route) bool {
	return !r.RequireTLS && !r.AllowPlain && slices.ContainsFunc(r.Prefer, func(name string) bool {
		t, ok := s.Transport(name)
		return ok && t.HasCertificates()
	})
}
