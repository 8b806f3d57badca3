package proto

import (
	"reflect"
	"runtime/metrics"
	"testing"
	"time"

	pb "google.golang.org/protobuf/proto"

	"github.com/openimpi/impi/plugins/sdk/transports"
)

// FuzzConvert takes any bytes for each message that a plugin's answers become
// part of: converting them never panics, and what became of them can be sent.
func FuzzConvert(f *testing.F) {
	seed := func(m pb.Message) {
		b, err := pb.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	seed(&Error{Code: "refused", Retryable: true, Reason: "no", Settings: []*SettingError{{Name: "port", Problem: "p", Remedy: "r"}}})
	seed(&CapabilitiesResponse{Reach: "node", DataPlanes: []string{"fd", ""}, Features: []string{"ip-channel"}})
	seed(&Setting{Name: "port", Type: "number", Default: &Value{Kind: &Value_Number{Number: 5000}}, Doc: "d"})
	seed(&SchemaResponse{Settings: []*Setting{{Name: "hosts", Type: "list", Default: &Value{Kind: &Value_List{List: &Strings{Items: []string{"a"}}}}}, {}}})
	seed(&ConfigureRequest{Settings: map[string]*Value{"a": {Kind: &Value_Text{Text: "x"}}, "b": {Kind: &Value_Truth{Truth: true}}, "c": {}}})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		defer time.AfterFunc(10*time.Second, func() { panic("one input has taken more than 10s") }).Stop()
		before := taken()
		convertError(t, b)
		convertSettings(t, b)
		if cost, most := taken()-before, uint64(16<<20+1024*len(b)); cost > most {
			t.Fatalf("%d bytes took %d bytes of memory", len(b), cost)
		}
	})
}

// taken is how much memory this process has taken from its heap so far, what it gave back included.
// It takes a microsecond, and may be wrong by some MiB.
func taken() uint64 {
	s := [...]metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s[:])
	return s[0].Value.Uint64()
}

func convertError(t *testing.T, b []byte) {
	var e Error
	if pb.Unmarshal(b, &e) == nil {
		te := e.TransportError("tcp", "dial", "x")
		if te == nil || te.Error() == "" || e.ConfigureError() == nil {
			t.Fatalf("%v became no error", &e)
		}
		again := FromError(te).TransportError("tcp", "dial", "x")
		if !reflect.DeepEqual(te, again) {
			t.Fatalf("%#v became %#v", te, again)
		}
	}
	var c CapabilitiesResponse
	if pb.Unmarshal(b, &c) == nil {
		have := ToCapabilities(&c)
		_ = have.Has(transports.FeatureIPChannel)
		if again := ToCapabilities(FromCapabilities(have)); !reflect.DeepEqual(have, again) {
			t.Fatalf("%+v became %+v", have, again)
		}
	}
}

func convertSettings(t *testing.T, b []byte) {
	var s SchemaResponse
	if pb.Unmarshal(b, &s) == nil {
		schema := ToSchema(s.GetSettings())
		if _, err := FromSchema(schema); err != nil || len(schema) != len(s.GetSettings()) {
			t.Fatalf("%v: %v", schema, err)
		}
		_ = transports.Defaults(schema)
	}
	var q ConfigureRequest
	if pb.Unmarshal(b, &q) == nil {
		settings := ToSettings(q.GetSettings())
		if _, err := FromSettings(settings); err != nil {
			t.Fatalf("%v: %v", settings, err)
		}
	}
}
