package transports

import (
	"errors"
	"fmt"
)

// Code classifies a transport's failure.
type Code string

// The codes. An unknown one is read as CodeInternal.
const (
	CodeRefused     Code = "refused"     // the peer refuses this side
	CodeUnreachable Code = "unreachable" // there is no listener, or no route
	CodeTimeout     Code = "timeout"
	CodeAuth        Code = "auth"     // the peer is not who it should be
	CodeProtocol    Code = "protocol" // the peer broke the transport's rules
	CodeResource    Code = "resource" // descriptors, memory, ports
	CodeUnsupported Code = "unsupported"
	CodeAddress     Code = "address" // the address is not one of this transport
	CodeInternal    Code = "internal"
)

// ErrTransport is wrapped by every *Error.
var ErrTransport = errors.New("transport failed")

// Error is the error of Listen, Accept and Dial.
type Error struct {
	Transport string
	Op        string // "listen", "accept" or "dial"
	Address   string
	Code      Code
	Retryable bool   // the same call may succeed later
	Reason    string // a sentence for the operator
	Cause     error  // nil if the error came from a plugin
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s %s: %s (%s)", e.Transport, e.Op, e.Address, e.Reason, e.Code)
}

// Unwrap returns ErrTransport and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{ErrTransport}
	}
	return []error{ErrTransport, e.Cause}
}

// SettingError is an error in one setting of a transport's config block.
type SettingError struct {
	Name    string // of the setting
	Problem string
	Remedy  string // what to write instead
}

func (e *SettingError) Error() string { return fmt.Sprintf("%s: %s; %s", e.Name, e.Problem, e.Remedy) }
