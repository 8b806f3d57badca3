package proto

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	pb "google.golang.org/protobuf/proto"

	"github.com/openimpi/impi/plugins/sdk/transports"
)

// over sends a message through its wire form.
func over[M pb.Message](t *testing.T, m M) M {
	t.Helper()
	b, err := pb.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	out := m.ProtoReflect().New().Interface()
	if err := pb.Unmarshal(b, out); err != nil {
		t.Fatal(err)
	}
	return out.(M)
}

func TestErrorTravels(t *testing.T) {
	in := &transports.Error{Transport: "x", Op: "dial", Address: "a", Code: transports.CodeRefused, Retryable: true, Reason: "no", Cause: errors.New("c")}
	err := over(t, FromError(fmt.Errorf("wrapped: %w", in))).TransportError("tcp", "dial", "b")
	want := &transports.Error{Transport: "tcp", Op: "dial", Address: "b", Code: transports.CodeRefused, Retryable: true, Reason: "no"}
	if !reflect.DeepEqual(err, error(want)) {
		t.Errorf("%#v", err)
	}
	err = over(t, FromError(errors.New("plain"))).TransportError("tcp", "dial", "b")
	var te *transports.Error
	if !errors.As(err, &te) || te.Code != transports.CodeInternal || te.Reason != "plain" || te.Retryable {
		t.Errorf("%#v", err)
	}
	if err := FromError(nil).TransportError("tcp", "dial", "b"); err != nil {
		t.Errorf("no error became %v", err)
	}
}

// Every code of the contract is one of the protocol; any other becomes internal.
func TestCodes(t *testing.T) {
	for _, c := range []transports.Code{
		transports.CodeRefused, transports.CodeUnreachable, transports.CodeTimeout, transports.CodeAuth, transports.CodeProtocol,
		transports.CodeResource, transports.CodeUnsupported, transports.CodeAddress, transports.CodeInternal,
	} {
		if got := knownCode(string(c)); got != c {
			t.Errorf("%s became %s", c, got)
		}
	}
	if got := knownCode("of a later version"); got != transports.CodeInternal {
		t.Errorf("an unknown code became %s", got)
	}
}

func TestSettingErrorsTravel(t *testing.T) {
	a := &transports.SettingError{Name: "a", Problem: "p", Remedy: "r"}
	b := &transports.SettingError{Name: "b", Problem: "q", Remedy: "s"}
	err := over(t, FromConfigureError(errors.Join(a, errors.Join(fmt.Errorf("in: %w", b))))).ConfigureError()
	var got []string
	for _, e := range flatten(err) {
		got = append(got, e.Error())
	}
	if !reflect.DeepEqual(got, []string{a.Error(), b.Error()}) {
		t.Errorf("%q", got)
	}
	if err := over(t, FromConfigureError(errors.New("other"))).ConfigureError(); err == nil || err.Error() != "configure: other" {
		t.Errorf("%v", err)
	}
	if err := FromConfigureError(nil).ConfigureError(); err != nil {
		t.Errorf("no error became %v", err)
	}
}

func TestSchemaTravels(t *testing.T) {
	in := []transports.Setting{
		{Name: "s", Type: transports.TypeString, Required: true, Doc: "d"},
		{Name: "n", Type: transports.TypeNumber, Default: 1.5},
		{Name: "b", Type: transports.TypeBool, Default: false},
		{Name: "l", Type: transports.TypeStrings, Default: []string{"x", "y"}},
		{Name: "e", Type: transports.TypeStrings, Default: []string{}},
	}
	wire, err := FromSchema(in)
	if err != nil {
		t.Fatal(err)
	}
	if got := ToSchema(over(t, &SchemaResponse{Settings: wire}).GetSettings()); !reflect.DeepEqual(got, in) {
		t.Errorf("%#v", got)
	}
	if _, err := FromSchema([]transports.Setting{{Name: "i", Default: 3}}); err == nil {
		t.Error("an int passed as a default")
	}
}

func TestSettingsTravel(t *testing.T) {
	in := map[string]any{"s": "", "n": 0.0, "b": false, "l": []string{"x"}}
	wire, err := FromSettings(in)
	if err != nil {
		t.Fatal(err)
	}
	if got := ToSettings(over(t, &ConfigureRequest{Settings: wire}).GetSettings()); !reflect.DeepEqual(got, in) {
		t.Errorf("%#v", got)
	}
	if _, err := FromSettings(map[string]any{"bad": 1}); err == nil {
		t.Error("an int passed")
	}
	if got := ToSettings(map[string]*Value{"later": {}}); len(got) != 0 {
		t.Errorf("an unknown kind of value became %v", got)
	}
}

func TestCapabilitiesTravel(t *testing.T) {
	in := transports.Capabilities{
		DataPlanes: []transports.DataPlane{transports.PlaneFD, "later"}, Features: []transports.Feature{"f"}, Reach: transports.ReachMachine,
	}
	if got := ToCapabilities(over(t, FromCapabilities(in))); !reflect.DeepEqual(got, in) {
		t.Errorf("%#v", got)
	}
}
