package config

import "slices"

// certificateSettings are what transports that encrypt call the files of a site's
// certificate: quic, tcp, and plugins that keep to the same names.
var certificateSettings = []string{"cert", "key", "ca"}

// HasCertificates reports whether the file gives the transport certificates or says
// that it is to encrypt.
func (t Transport) HasCertificates() bool {
	return slices.ContainsFunc(t.Settings, func(s Setting) bool {
		path, _ := s.Value.(string)
		return slices.Contains(certificateSettings, s.Name) && path != "" || s.Name == "tls" && s.Value == true
	})
}

// closes reports whether a route is closed: who has certificates for a transport that
// it prefers wants to be encrypted, so that nothing may leave the machine in plain
// unless the file says require_tls = false.
func (s Site) closes(r Route) bool {
	return !r.RequireTLS && !r.AllowPlain && slices.ContainsFunc(r.Prefer, func(name string) bool {
		t, ok := s.Transport(name)
		return ok && t.HasCertificates()
	})
}
