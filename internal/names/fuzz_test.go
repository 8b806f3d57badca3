package names

import (
	"bytes"
	"testing"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc/peer"
	protobuf "google.golang.org/protobuf/proto"

	"github.com/openimpi/impi/core/names"
	"github.com/openimpi/impi/internal/rpc"
	"github.com/openimpi/impi/internal/rpc/proto"
	"github.com/openimpi/impi/internal/watchdog"
)

// FuzzRequest carries out requests of any bytes, as a server does.
func FuzzRequest(f *testing.F) {
	for _, r := range []*proto.PublishRequest{
		{}, {Owner: []byte{1}, Name: messageOf(names.Name{Scope: "chem", Service: "heat"}), Port: []byte("impi-port/1+key=0"), Renew: true}, {Name: messageOf(names.Name{Service: "\xff"})},
	} {
		b, err := protobuf.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer watchdog.Start()()
		s := &Server{cfg: ServerConfig{Logger: hclog.NewNullLogger()}, table: names.NewTable(names.Limits{})}
		s.table.AddPublisher(1)
		ctx := peer.NewContext(t.Context(), &peer.Peer{AuthInfo: &rpc.Conn{Peer: &admitted{holder: 1}}})
		var r proto.PublishRequest
		if protobuf.Unmarshal(b, &r) != nil {
			return
		}
		_, err := asked{s: s}.Publish(ctx, &r)
		found, lost := asked{s: s}.Lookup(ctx, r.GetName())
		if (err == nil) != (lost == nil) || err == nil && !bytes.Equal(found.Port, r.Port) {
			t.Fatalf("%v, and then %v: %v", err, found, lost)
		}
		if s.table.RemovePublisher(1); s.table.Len() != 0 {
			t.Fatalf("%d names are left", s.table.Len())
		}
	})
}
