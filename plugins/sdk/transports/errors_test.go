package transports_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/transports"
)

func TestErrorSaysEverything(t *testing.T) {
	cause := errors.New("cause")
	e := &transports.Error{
		Transport: "tcp", Op: "dial", Address: "192.0.2.1:80",
		Code: transports.CodeRefused, Reason: "nobody listens there", Cause: cause,
	}
	if got, want := e.Error(), "tcp: dial 192.0.2.1:80: nobody listens there (refused)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if !errors.Is(e, transports.ErrTransport) || !errors.Is(e, cause) {
		t.Error("the error does not wrap ErrTransport and its cause")
	}
	e.Cause = nil // as it comes from a plugin
	if !errors.Is(e, transports.ErrTransport) || errors.Is(e, cause) {
		t.Error("without a cause, the error does not wrap ErrTransport alone")
	}
}

func TestSettingErrorNamesSettingAndRemedy(t *testing.T) {
	e := &transports.SettingError{Name: "port_range", Problem: "it is upside down", Remedy: "write 1-2"}
	if got, want := e.Error(), "port_range: it is upside down; write 1-2"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestDefaultsLeavesOutWhatHasNone(t *testing.T) {
	got := transports.Defaults([]transports.Setting{
		{Name: "a", Default: 1.0}, {Name: "b"}, {Name: "c", Default: false}, {Name: "d", Default: ""},
	})
	if want := map[string]any{"a": 1.0, "c": false, "d": ""}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestCapabilitiesHas(t *testing.T) {
	c := transports.Capabilities{Features: []transports.Feature{transports.FeaturePeerAuth}}
	if !c.Has(transports.FeaturePeerAuth) || c.Has(transports.FeatureEncrypted) {
		t.Errorf("%+v: Has is wrong", c)
	}
}
