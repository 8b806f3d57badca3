package transporttest

import (
	"regexp"
	"strings"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

var aboutCases = []Case{
	{"T-ABOUT-01", "info", "the name fits the config's syntax, and there is a data plane and a reach", info},
	{"T-ABOUT-02", "schema", "settings have names, types and defaults of that type, and Configure takes the defaults, twice", schema},
	{"T-ABOUT-03", "address", "a listener's address is printable text without spaces, and another's is another", address},
	{"T-ABOUT-04", "limits", "limits are not negative and do not change", limits},
	{"T-ABOUT-05", "no-wildcard", "a listener's address says where peers reach it: it has the host that Listen was told, not 0.0.0.0 or [::], where it may be bound", noWildcard},
	{"T-ABOUT-06", "planes", "links of Dial and of Accept can leave by a data plane that Capabilities lists, and what Detach gives of those by fd and peer-shm is the link itself, open and without a copy that stays behind", planes},
}

func info(e *env) {
	i := e.h.Transport.Info()
	if !regexp.MustCompile(`^[a-z][a-z0-9-]*$`).MatchString(i.Name) {
		e.Fatalf("the name %q does not match [a-z][a-z0-9-]*", i.Name)
	}
	c := e.h.Transport.Capabilities()
	if len(c.DataPlanes) == 0 {
		e.Fatalf("the transport has no data plane")
	}
	if c.Reach != transports.ReachMachine && c.Reach != transports.ReachNetwork {
		e.Fatalf("the reach is %q", c.Reach)
	}
}

func schema(e *env) {
	seen := map[string]bool{}
	settings := e.h.Transport.Schema()
	for _, s := range settings {
		if !regexp.MustCompile(`^[a-z][a-z0-9_]*$`).MatchString(s.Name) || seen[s.Name] {
			e.Fatalf("the setting %q is named twice or not as a setting", s.Name)
		}
		seen[s.Name] = true
		if s.Doc == "" {
			e.Fatalf("the setting %s has no text that says what it does", s.Name)
		}
		if !fits(s) {
			e.Fatalf("the setting %s of type %s has the default %v (%T)", s.Name, s.Type, s.Default, s.Default)
		}
		if s.Required {
			e.Skipf("the setting %s has no default", s.Name)
		}
	}
	for range 2 {
		if err := e.h.Transport.Configure(transports.Defaults(settings)); err != nil {
			e.Fatalf("configure with the defaults: %v", err)
		}
	}
}

func fits(s transports.Setting) (ok bool) {
	if s.Default == nil {
		return true
	}
	switch s.Type {
	case transports.TypeString, transports.TypePath:
		_, ok = s.Default.(string)
	case transports.TypeNumber:
		_, ok = s.Default.(float64)
	case transports.TypeBool:
		_, ok = s.Default.(bool)
	case transports.TypeStrings:
		_, ok = s.Default.([]string)
	}
	return ok
}

func address(e *env) {
	a, b := e.listen().Address(), e.listen().Address()
	for _, s := range []string{a, b} {
		if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
			e.Fatalf("the address %q is empty or has more than printable ASCII without spaces", s)
		}
	}
	if a == b {
		e.Fatalf("two listeners have the address %s", a)
	}
}

func limits(e *env) {
	a, b := e.pair()
	for _, l := range []link.Link{a, b} {
		before := l.Limits()
		if before.Batch < 0 || before.Stream < 0 {
			e.Fatalf("limits: %+v", before)
		}
		e.must(e.greet(a, b, "some bytes"))
		if after := l.Limits(); after != before {
			e.Fatalf("limits were %+v and are %+v", before, after)
		}
	}
}

// wildcard finds an address of no machine in particular.
var wildcard = regexp.MustCompile(`(^|[^0-9.])0\.0\.0\.0($|[^0-9.])|\[::\]|^:[0-9]+$`)

func noWildcard(e *env) {
	if a := e.listen().Address(); wildcard.MatchString(a) {
		e.Fatalf("a listener that was to be at %q has the address %s, which peers on other machines take for their own", e.h.Listen.Host, a)
	}
}
