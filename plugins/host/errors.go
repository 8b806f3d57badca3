package host

import (
	"errors"
	"slices"
	"strings"
)

// The kinds of failure, for errors.Is.
var (
	ErrConfig    = errors.New("plugin configuration is wrong")
	ErrNotFound  = errors.New("plugin not found")
	ErrUnsafe    = errors.New("plugin file is not safe to run")
	ErrChecksum  = errors.New("plugin checksum mismatch")
	ErrRunDir    = errors.New("run directory is unusable")
	ErrExec      = errors.New("plugin cannot be executed")
	ErrNotPlugin = errors.New("not an impi transport plugin")
	ErrVersion   = errors.New("plugin protocol version mismatch")
	ErrMTLS      = errors.New("plugin does not speak AutoMTLS")
	ErrName      = errors.New("plugin serves another transport")
	ErrCrashed   = errors.New("plugin died")
	ErrHung      = errors.New("plugin does not answer")
	ErrProtocol  = errors.New("plugin broke the protocol")
	ErrSettings  = errors.New("transport settings are wrong")
	ErrBackoff   = errors.New("plugin is waiting to be restarted")
	ErrFailed    = errors.New("plugin failed too often")
	ErrClosed    = errors.New("plugin is closed")
)

// Error is the error type of this package: which plugin, what happened, what to do.
type Error struct {
	Plugin  string // name of the transport
	Path    string // path of the binary, if one is involved
	Kind    error  // one of the Err variables
	Problem string // a sentence without a full stop
	Remedy  string // what the operator can do
	Output  string // the last lines that the plugin wrote, if they may help
	Cause   error  // may be nil
}

// Error returns the whole text. Lines that the plugin wrote are on lines of their own.
func (e *Error) Error() string {
	if e.Output == "" {
		return e.brief()
	}
	return e.brief() + "\n  it wrote: " + strings.ReplaceAll(e.Output, "\n", "\n            ")
}

func (e *Error) brief() string {
	var b strings.Builder
	b.WriteString("transport plugin ")
	b.WriteString(e.Plugin)
	if e.Path != "" {
		b.WriteString(" (" + e.Path + ")")
	}
	b.WriteString(": " + e.Problem)
	if e.Remedy != "" {
		b.WriteString("; " + e.Remedy)
	}
	return b.String()
}

func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// retryable reports whether the same call may succeed later although the operator changes
// nothing.
func retryable(err error) bool {
	return slices.ContainsFunc([]error{ErrCrashed, ErrHung, ErrBackoff, ErrFailed}, func(kind error) bool { return errors.Is(err, kind) })
}
