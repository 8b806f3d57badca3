package sdk

import (
	"context"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/openimpi/impi/plugins/sdk/proto"
)

// speak records the version that the node and this plugin use, and logs what is missing if
// that is not the newest one.
func (s *server) speak(version int) {
	s.version.Store(int32(version))
	var missing []string
	for _, a := range proto.Lacking(version) {
		missing = append(missing, a.Name)
	}
	if len(missing) > 0 {
		Logger().Debug("the protocol that is spoken is not the newest one", "spoken", version, "newest", proto.Version, "without", strings.Join(missing, ", "))
	}
}

// speaks returns all versions that the plugin speaks, oldest first.
func (s *server) speaks() (list []uint32) {
	for _, v := range append(proto.Versions(), s.protocols...) {
		if !slices.Contains(list, uint32(v)) {
			list = append(list, uint32(v))
		}
	}
	slices.Sort(list)
	return list
}

// Health returns what the transport says about itself, if it has a method
//
//	Health() error  // nil: no problem; otherwise what works less well than it could
//
// which is not part of the contract. That method may be called at any time and must not
// block. The request says which lines of the log the node wants from now on.
func (s *server) Health(_ context.Context, req *proto.HealthRequest) (*proto.HealthResponse, error) {
	if s.version.Load() < 2 {
		return nil, status.Error(codes.Unimplemented, "Health came with version 2 of the protocol")
	}
	if level := hclog.LevelFromString(req.GetLogLevel()); level != hclog.NoLevel {
		Logger().SetLevel(level)
	}
	answer := &proto.HealthResponse{}
	if t, ok := s.t.(interface{ Health() error }); ok {
		if err := t.Health(); err != nil {
			answer.Problem = err.Error()
		}
	}
	return answer, nil
}
