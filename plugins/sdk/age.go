package sdk

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/openimpi/impi/plugins/proto"
)

// speak notes the version of the protocol that the node and this plugin share, and
// says what is missing where that is not the newest one.
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

// speaks lists all versions that the plugin can speak, the oldest first.
func (s *server) speaks() (list []uint32) {
	for _, v := range append(proto.Versions(), s.protocols...) {
		if !slices.Contains(list, uint32(v)) {
			list = append(list, uint32(v))
		}
	}
	slices.Sort(list)
	return list
}

// Health passes on what a transport says of itself that has a method
//
//	Health() error  nil: all is well; else what works less well than it could
//
// which the contract does not have. It may be called at any time and must not block.
func (s *server) Health(context.Context, *proto.HealthRequest) (*proto.HealthResponse, error) {
	if s.version.Load() < 2 {
		return nil, status.Error(codes.Unimplemented, "Health came with version 2 of the protocol")
	}
	answer := &proto.HealthResponse{}
	if t, ok := s.t.(interface{ Health() error }); ok {
		if err := t.Health(); err != nil {
			answer.Problem = err.Error()
		}
	}
	return answer, nil
}
