package proto

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/plugins/sdk/transports"
)

// FromError converts the error of a transport's method to the message Error; nil gives nil.
// Errors other than *transports.Error have the code internal.
func FromError(err error) *Error {
	if err == nil {
		return nil
	}
	if te, ok := errors.AsType[*transports.Error](err); ok {
		return &Error{Code: string(te.Code), Retryable: te.Retryable, Reason: te.Reason}
	}
	return &Error{Code: string(transports.CodeInternal), Reason: err.Error()}
}

// TransportError returns the error of a call to the transport at address, or nil if the
// answer had none.
func (e *Error) TransportError(transport, op, address string) error {
	if e == nil {
		return nil
	}
	return &transports.Error{
		Transport: transport, Op: op, Address: address,
		Code: knownCode(e.GetCode()), Retryable: e.GetRetryable(), Reason: e.GetReason(),
	}
}

func knownCode(s string) transports.Code {
	switch c := transports.Code(s); c {
	case transports.CodeRefused, transports.CodeUnreachable, transports.CodeTimeout,
		transports.CodeAuth, transports.CodeProtocol, transports.CodeResource,
		transports.CodeUnsupported, transports.CodeAddress:
		return c
	default:
		return transports.CodeInternal
	}
}

// FromConfigureError converts the error of Configure: each joined *transports.SettingError
// becomes an entry, others become the reason.
func FromConfigureError(err error) *Error {
	if err == nil {
		return nil
	}
	out := &Error{Code: string(transports.CodeInternal), Reason: err.Error()}
	for _, e := range flatten(err) {
		if se, ok := errors.AsType[*transports.SettingError](e); ok {
			out.Settings = append(out.Settings, &SettingError{Name: se.Name, Problem: se.Problem, Remedy: se.Remedy})
		}
	}
	return out
}

// ConfigureError is the reverse of FromConfigureError: it joins a *transports.SettingError for each
// entry. It returns nil for a nil e.
func (e *Error) ConfigureError() error {
	if e == nil {
		return nil
	}
	if len(e.GetSettings()) == 0 {
		return fmt.Errorf("configure: %s", e.GetReason())
	}
	errs := make([]error, len(e.GetSettings()))
	for i, s := range e.GetSettings() {
		errs[i] = &transports.SettingError{Name: s.GetName(), Problem: s.GetProblem(), Remedy: s.GetRemedy()}
	}
	return errors.Join(errs...)
}

// flatten returns the errors that errors.Join has joined, at any depth.
func flatten(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var out []error
	for _, e := range joined.Unwrap() {
		out = append(out, flatten(e)...)
	}
	return out
}

// FromValue converts a string, float64, bool or []string to the message Value.
func FromValue(v any) (*Value, error) {
	switch v := v.(type) {
	case string:
		return &Value{Kind: &Value_Text{Text: v}}, nil
	case float64:
		return &Value{Kind: &Value_Number{Number: v}}, nil
	case bool:
		return &Value{Kind: &Value_Truth{Truth: v}}, nil
	case []string:
		return &Value{Kind: &Value_List{List: &Strings{Items: v}}}, nil
	}
	return nil, fmt.Errorf("a setting cannot be a %T: string, float64, bool and []string can", v)
}

// Any is the reverse of FromValue. It returns nil for a value that is absent or of an
// unknown kind.
func (v *Value) Any() any {
	switch k := v.GetKind().(type) {
	case *Value_Text:
		return k.Text
	case *Value_Number:
		return k.Number
	case *Value_Truth:
		return k.Truth
	case *Value_List:
		return append([]string{}, k.List.GetItems()...)
	}
	return nil
}

// FromSettings converts settings to their message form.
func FromSettings(settings map[string]any) (map[string]*Value, error) {
	out := make(map[string]*Value, len(settings))
	for name, v := range settings {
		w, err := FromValue(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[name] = w
	}
	return out, nil
}

// ToSettings is the reverse of FromSettings. Values of unknown kind are left out.
func ToSettings(settings map[string]*Value) map[string]any {
	out := make(map[string]any, len(settings))
	for name, v := range settings {
		if x := v.Any(); x != nil {
			out[name] = x
		}
	}
	return out
}

// FromSchema converts a schema to its message form.
func FromSchema(schema []transports.Setting) ([]*Setting, error) {
	out := make([]*Setting, len(schema))
	for i, s := range schema {
		out[i] = &Setting{Name: s.Name, Type: string(s.Type), Required: s.Required, Doc: s.Doc}
		if s.Default == nil {
			continue
		}
		v, err := FromValue(s.Default)
		if err != nil {
			return nil, fmt.Errorf("default of %s: %w", s.Name, err)
		}
		out[i].Default = v
	}
	return out, nil
}

// ToSchema is the reverse of FromSchema. What comes from a plugin is converted as it is, unchecked.
func ToSchema(schema []*Setting) []transports.Setting {
	out := make([]transports.Setting, len(schema))
	for i, s := range schema {
		out[i] = transports.Setting{
			Name: s.GetName(), Type: transports.SettingType(s.GetType()),
			Required: s.GetRequired(), Default: s.GetDefault().Any(), Doc: s.GetDoc(),
		}
	}
	return out
}

// FromCapabilities converts capabilities to their message form.
func FromCapabilities(c transports.Capabilities) *CapabilitiesResponse {
	out := &CapabilitiesResponse{Reach: string(c.Reach)}
	for _, p := range c.DataPlanes {
		out.DataPlanes = append(out.DataPlanes, string(p))
	}
	for _, f := range c.Features {
		out.Features = append(out.Features, string(f))
	}
	return out
}

// ToCapabilities is the reverse of FromCapabilities. It keeps planes and features that it does not
// know.
func ToCapabilities(c *CapabilitiesResponse) transports.Capabilities {
	out := transports.Capabilities{Reach: transports.Reach(c.GetReach())}
	for _, p := range c.GetDataPlanes() {
		out.DataPlanes = append(out.DataPlanes, transports.DataPlane(p))
	}
	for _, f := range c.GetFeatures() {
		out.Features = append(out.Features, transports.Feature(f))
	}
	return out
}
