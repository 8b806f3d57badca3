package chaos

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openimpi/impi/plugins/sdk/transports"
)

// Faults say what happens to the bytes that one side of a link sends. To disturb both
// directions, use this package at both ends. The zero value disturbs nothing.
//
// The faults depend on the seed, the link's number and the number of bytes before, and
// never on how the bytes are divided into calls: a run with the same seed has the same
// faults at the same bytes.
type Faults struct {
	Seed uint64

	Delay     time.Duration // added to the time of each byte
	Jitter    time.Duration // maximum additional delay of each piece, without overtaking
	Bandwidth int64         // bytes per second; 0: no limit
	Piece     int           // most bytes with the same jitter
	Buffer    int           // most bytes under way in one direction

	Stall      time.Duration // nothing is sent for half to one and a half of this time
	StallEvery int64         // after half to one and a half of this many bytes; 0: never

	CutBytes int64         // the link breaks after half to one and a half of this many bytes; 0: never
	CutAfter time.Duration // the link breaks at this age; 0: never
	Cuts     int           // maximum number of links that are broken; 0: no limit
}

// String lists the fields that are not zero, as in a config block.
func (f Faults) String() string {
	var parts []string
	add := func(name string, zero bool, value any) {
		if !zero {
			parts = append(parts, fmt.Sprintf("%s=%v", name, value))
		}
	}
	add("delay", f.Delay == 0, f.Delay)
	add("jitter", f.Jitter == 0, f.Jitter)
	add("bandwidth", f.Bandwidth == 0, f.Bandwidth)
	add("stall", f.StallEvery == 0, f.Stall)
	add("stall_every", f.StallEvery == 0, f.StallEvery)
	add("cut_bytes", f.CutBytes == 0, f.CutBytes)
	add("cut_after", f.CutAfter == 0, f.CutAfter)
	add("cuts", f.Cuts == 0, f.Cuts)
	if len(parts) == 0 {
		parts = []string{"no faults"}
	}
	return fmt.Sprintf("%s, seed=%d", strings.Join(parts, ", "), f.Seed)
}

// schema returns the settings. names are the transports that can be chosen, around is the default.
func schema(names []string, around string) []transports.Setting {
	duration := func(name, doc string) transports.Setting {
		return transports.Setting{Name: name, Type: transports.TypeString, Default: "0s", Doc: doc}
	}
	number := func(name string, value float64, doc string) transports.Setting {
		return transports.Setting{Name: name, Type: transports.TypeNumber, Default: value, Doc: doc}
	}
	return []transports.Setting{
		{Name: "around", Type: transports.TypeString, Default: around, Doc: "the transport that is disturbed: " + strings.Join(names, ", ")},
		{Name: "settings", Type: transports.TypeStrings, Default: []string{}, Doc: `that transport's own settings, as in "port_range=7900-7999"`},
		number("seed", 1, "faults happen at the same bytes of a link for the same seed"),
		duration("delay", `time that every byte takes longer, as in "2ms"`),
		duration("jitter", "further time, different for each piece, at most"),
		number("bandwidth", 0, "bytes per second in each direction; 0 for no limit"),
		number("piece", 16<<10, "bytes of the pieces that have a jitter of their own, at most"),
		number("buffer", 4<<20, "bytes that may be under way in one direction"),
		duration("stall", "time for which nothing leaves, on average"),
		number("stall_every", 0, "bytes between two stalls, on average; 0 for no stalls"),
		number("cut_bytes", 0, "bytes in one direction after which a link breaks, on average; 0 for never"),
		duration("cut_after", "age at which a link breaks; 0s for never"),
		number("cuts", 0, "links that this process breaks, at most; 0 for no limit"),
	}
}

type reader struct {
	settings map[string]any
	faults   []error
}

func (r *reader) wrong(name, problem, remedy string) {
	r.faults = append(r.faults, &transports.SettingError{Name: name, Problem: problem, Remedy: remedy})
}

func (r *reader) duration(name string) time.Duration {
	s, _ := r.settings[name].(string)
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > time.Hour {
		r.wrong(name, fmt.Sprintf("%q is no duration between 0s and 1h", s), `write a number with its unit, as in "1.5ms"`)
	}
	return d
}

func (r *reader) whole(name string, least, most int64) int64 {
	f, _ := r.settings[name].(float64)
	n := int64(f)
	if f != float64(n) || n < least || n > most {
		r.wrong(name, fmt.Sprintf("%v is no whole number from %d to %d", f, least, most), "write one that is")
	}
	return n
}

func faultsOf(settings map[string]any) (Faults, error) {
	r := &reader{settings: settings}
	const many = 1 << 50
	f := Faults{
		Seed: uint64(r.whole("seed", 0, many)), Delay: r.duration("delay"), Jitter: r.duration("jitter"),
		Bandwidth: r.whole("bandwidth", 0, many), Piece: int(r.whole("piece", 1, 1<<30)), Buffer: int(r.whole("buffer", 1, 1<<30)),
		Stall: r.duration("stall"), StallEvery: r.whole("stall_every", 0, many),
		CutBytes: r.whole("cut_bytes", 0, many), CutAfter: r.duration("cut_after"), Cuts: int(r.whole("cuts", 0, 1<<30)),
	}
	if (f.Stall == 0) != (f.StallEvery == 0) {
		r.wrong("stall", "stall and stall_every go together", "set both, or none")
	}
	return f, errors.Join(r.faults...)
}

// inner reads the settings of the wrapped transport, which are given as text.
func (r *reader) inner(t transports.Transport) map[string]any {
	settings := transports.Defaults(t.Schema())
	lines, _ := r.settings["settings"].([]string)
	for _, line := range lines {
		name, text, _ := strings.Cut(line, "=")
		i := slices.IndexFunc(t.Schema(), func(s transports.Setting) bool { return s.Name == name })
		if i < 0 {
			r.wrong("settings", fmt.Sprintf("%s has no setting %q", t.Info().Name, name), "see docs/transports.md")
			continue
		}
		value, err := parse(t.Schema()[i].Type, text)
		if err != nil {
			r.wrong("settings", fmt.Sprintf("%s: %q is no %s", name, text, t.Schema()[i].Type), "write name=value")
			continue
		}
		settings[name] = value
	}
	for _, s := range t.Schema() {
		if _, given := settings[s.Name]; s.Required && !given {
			r.wrong("settings", t.Info().Name+" needs "+s.Name, fmt.Sprintf("add %q", s.Name+"=..."))
		}
	}
	return settings
}

func parse(typ transports.SettingType, text string) (any, error) {
	switch typ {
	case transports.TypeNumber:
		return strconv.ParseFloat(text, 64)
	case transports.TypeBool:
		return strconv.ParseBool(text)
	case transports.TypeStrings:
		return strings.Split(text, ","), nil
	case transports.TypeString, transports.TypePath:
	}
	return text, nil
}
