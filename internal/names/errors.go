package names

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/openimpi/impi/core/names"
)

// The ways in which a request fails beside those of core/names.
var (
	// ErrUnreachable means that the server did not answer.
	ErrUnreachable = errors.New("the server for names does not answer")
	// ErrVersion means that the server is of another version of impi.
	ErrVersion = errors.New("the server for names and this node are of different versions of impi")
	// ErrDenied means that one side does not have the other's key.
	ErrDenied = errors.New("the server for names and this job do not have the same key")
)

var statusCodes = map[codes.Code]error{
	codes.AlreadyExists: names.ErrPublished, codes.PermissionDenied: names.ErrUnknown, codes.NotFound: names.ErrNotFound,
	codes.ResourceExhausted: names.ErrFull, codes.InvalidArgument: names.ErrName,
}

func toStatus(err error) error {
	for code, kind := range statusCodes {
		if errors.Is(err, kind) {
			return status.Error(code, strings.TrimPrefix(err.Error(), kind.Error()+": "))
		}
	}
	return err
}

// fromStatus converts an error at the client. answered reports whether it came from the
// server.
func fromStatus(err error) (_ error, answered bool) {
	if err == nil {
		return nil, true
	}
	s := status.Convert(err)
	if kind, ok := statusCodes[s.Code()]; ok {
		return fmt.Errorf("%w: %s", kind, s.Message()), true
	}
	return errors.New(s.Message()), false
}
