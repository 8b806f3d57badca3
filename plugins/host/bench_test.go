package host

import (
	"testing"

	"github.com/openimpi/impi/plugins/sdk/transports"
)

// BenchmarkStart is a plugin's start until it is ready.
func BenchmarkStart(b *testing.B) {
	for _, c := range []struct {
		name   string
		noMTLS bool
		mode   string
	}{{"mtls", false, ""}, {"plain", true, "nomtls"}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				p, err := Start(b.Context(), Config{Name: "unix", Builtin: true, NoMTLS: c.noMTLS, Env: []string{envMode + "=" + c.mode}})
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				p.Close()
				b.StartTimer()
			}
		})
	}
}

// BenchmarkDial is what a link costs, once: two plugin calls and a descriptor on
// either side.
func BenchmarkDial(b *testing.B) {
	p, err := Start(b.Context(), Config{Name: "unix", Builtin: true, Env: []string{envMode + "="}})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	l := listen(b, p)
	for b.Loop() {
		x, err := p.Transport().Dial(b.Context(), transports.DialSpec{Address: l.Address()})
		if err != nil {
			b.Fatal(err)
		}
		y, err := l.Accept(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		x.Close()
		y.Close()
	}
}
