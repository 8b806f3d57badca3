package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	pb "google.golang.org/protobuf/proto"

	"github.com/openimpi/impi/plugins/sdk/proto"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// Complete checks settings against a schema and adds the defaults. It returns all faults:
// *transports.SettingError, joined, wrapping ErrSettings. It does not change settings.
func Complete(schema []transports.Setting, settings map[string]any) (map[string]any, error) {
	out := make(map[string]any, len(schema))
	var faults []error
	fault := func(name, problem, remedy string) {
		faults = append(faults, &transports.SettingError{Name: name, Problem: problem, Remedy: remedy})
	}
	known := make([]string, 0, len(schema))
	for _, s := range schema {
		known = append(known, s.Name)
		v, given := settings[s.Name]
		switch {
		case !given && s.Required:
			fault(s.Name, "is required", fmt.Sprintf("give it a %s: %s", s.Type, s.Doc))
		case !given && s.Default != nil:
			out[s.Name] = s.Default
		case given:
			if x, ok := coerce(s.Type, v); ok {
				out[s.Name] = x
			} else {
				fault(s.Name, fmt.Sprintf("has a value of the wrong type: %v", v), fmt.Sprintf("give it a %s: %s", s.Type, s.Doc))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if !slices.Contains(known, name) {
			remedy := "remove it: the transport has no settings"
			if len(known) > 0 {
				remedy = "the transport's settings are " + strings.Join(known, ", ")
			}
			fault(name, "is not a setting of this transport", remedy)
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(append([]error{ErrSettings}, faults...)...)
	}
	return out, nil
}

// Absolute makes relative paths in the settings absolute, starting from the folder dir
// unless dir is empty. It does not change settings.
func Absolute(schema []transports.Setting, settings map[string]any, dir string) map[string]any {
	out := maps.Clone(settings)
	for _, s := range schema {
		path, ok := settings[s.Name].(string)
		if s.Type == transports.TypePath && ok && path != "" && dir != "" && !filepath.IsAbs(path) {
			out[s.Name] = filepath.Join(dir, path)
		}
	}
	return out
}

// coerce converts a value to a setting's type if that does not change its meaning.
func coerce(t transports.SettingType, v any) (any, bool) {
	switch t {
	case transports.TypeString, transports.TypePath:
		s, ok := v.(string)
		return s, ok
	case transports.TypeBool:
		b, ok := v.(bool)
		return b, ok
	case transports.TypeNumber:
		return number(v)
	case transports.TypeStrings:
		return list(v)
	}
	return nil, false
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case float64:
		return n, true
	case float32:
		return float64(n), true
	case int:
		return float64(n), true
	case int32:
		return float64(n), true
	case int64:
		return float64(n), true
	case uint64:
		return float64(n), true
	}
	return 0, false
}

func list(v any) ([]string, bool) {
	switch l := v.(type) {
	case []string:
		return append([]string{}, l...), true
	case []any:
		out := make([]string, len(l))
		for i, x := range l {
			s, ok := x.(string)
			if !ok {
				return nil, false
			}
			out[i] = s
		}
		return out, true
	}
	return nil, false
}

func (i *instance) configure(ctx context.Context, settings map[string]any) error {
	full, err := Complete(i.schema, Absolute(i.schema, withOffers(i.schema, settings, i.cfg.Offers), i.cfg.Dir))
	if err != nil {
		return err
	}
	values, err := proto.FromSettings(full)
	if err != nil {
		return err
	}
	req := &proto.ConfigureRequest{Call: i.call(ctx), Settings: values}
	if size := pb.Size(req); size > proto.MaxConfigure {
		return errors.Join(ErrSettings, tooLarge(values, size))
	}
	answer, err := i.rpc.Configure(ctx, req)
	if err != nil {
		return i.broken(ctx, "Configure", err)
	}
	if answer.GetError() != nil {
		return errors.Join(ErrSettings, answer.GetError().ConfigureError())
	}
	return nil
}

// withOffers adds the offered settings that the schema has and settings does not. It does
// not change settings.
func withOffers(schema []transports.Setting, settings, offers map[string]any) map[string]any {
	out := maps.Clone(offers)
	maps.DeleteFunc(out, func(name string, _ any) bool {
		return !slices.ContainsFunc(schema, func(s transports.Setting) bool { return s.Name == name })
	})
	if out == nil {
		return settings
	}
	maps.Copy(out, settings)
	return out
}

// tooLarge is the error for settings that are too large; it names the largest one.
func tooLarge(values map[string]*proto.Value, size int) error {
	largest, most := "", -1
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if n := pb.Size(values[name]); n > most {
			largest, most = name, n
		}
	}
	return &transports.SettingError{Name: largest,
		Problem: fmt.Sprintf("has %d bytes; all settings together have %d, the limit is %d", most, size, proto.MaxConfigure),
		Remedy:  "put the data into a file and give its name"}
}
