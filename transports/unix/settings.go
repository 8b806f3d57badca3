package unix

import (
	"errors"

	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

var schema = []transports.Setting{
	{Name: "abstract", Type: transports.TypeBool, Default: false, Doc: "use names in the kernel's abstract space instead of socket files: no file is left behind by a crash, no path is too long"},
	{Name: "send_buffer", Type: transports.TypeNumber, Default: 1048576.0, Doc: "bytes that may be under way in one direction of a link; 0 takes the kernel's default"},
}

// settings are the values of one Configure; they never change.
type settings struct {
	abstract bool
	send     int
}

// Schema lists the settings.
func (t *Transport) Schema() []transports.Setting {
	return append([]transports.Setting(nil), schema...)
}

// Configure sets the settings of links and listeners that are made after it.
func (t *Transport) Configure(given map[string]any) error {
	s := &settings{}
	s.abstract, _ = given["abstract"].(bool)
	var err error
	if s.send, err = socket.Whole(given, schema[1], 0, socket.MaxBuffer); err != nil {
		return errors.Join(err)
	}
	t.settings.Store(s)
	return nil
}
