package config

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/openimpi/impi/internal/hostlist"
)

// kind is the type of an attribute: what is expected, an example of it in HCL,
// and how to get a Go value. parse reports a *wrong if it can say more than
// that the value is not what was expected.
type kind struct {
	want    string
	example string
	parse   func(cty.Value) (any, *wrong)
	typ     cty.Type // number or bool, which an environment variable holds as a string; else cty.NilType
}

// wrong is a fault in a value. Empty fields are filled from the kind. Element
// is the index of the culprit in a list, or -1 for the whole value.
type wrong struct {
	problem string
	remedy  string
	element int
}

var mismatch = &wrong{element: -1}

func isString(v cty.Value) bool { return v.Type() == cty.String }

func written(want, example string, parse func(s string) (any, *wrong)) kind {
	return kind{want: want, example: example, parse: func(v cty.Value) (any, *wrong) {
		if !isString(v) {
			return nil, mismatch
		}
		return parse(v.AsString())
	}}
}

func matched(v any, ok bool) (any, *wrong) {
	if !ok {
		return nil, mismatch
	}
	return v, nil
}

func text(want, example string) kind {
	return written(want, quote(example), func(s string) (any, *wrong) { return matched(s, s != "") })
}

func truth() kind {
	return kind{want: "true or false", example: "true", typ: cty.Bool, parse: func(v cty.Value) (any, *wrong) {
		return matched(v.Type() == cty.Bool && v.True(), v.Type() == cty.Bool)
	}}
}

func integer(low, high int64) kind {
	want := fmt.Sprintf("a whole number from %d to %d", low, high)
	return kind{want: want, example: strconv.FormatInt(max(low, 0), 10), typ: cty.Number, parse: func(v cty.Value) (any, *wrong) {
		if isString(v) {
			if n, err := strconv.ParseInt(v.AsString(), 0, 64); err == nil && n >= low && n <= high {
				return nil, &wrong{remedy: fmt.Sprintf("write %d without quotes", n), element: -1}
			}
		}
		if v.Type() != cty.Number {
			return nil, mismatch
		}
		n, accuracy := v.AsBigFloat().Int64()
		if accuracy != big.Exact || n < low || n > high {
			return nil, mismatch
		}
		return n, nil
	}}
}

func oneOf(known []string) kind {
	return written("one of "+strings.Join(known, ", "), quote(known[0]), func(s string) (any, *wrong) {
		if slices.Contains(known, s) {
			return s, nil
		}
		return nil, &wrong{remedy: meant(s, known), element: -1}
	})
}

// words parses a list of non-empty strings to []string; it must not be empty.
func words(example string) kind {
	return kind{want: "a list of one or more strings", example: example, parse: func(v cty.Value) (any, *wrong) {
		if isString(v) {
			return nil, &wrong{remedy: "put it into a list: [" + quote(v.AsString()) + "]", element: -1}
		}
		list, bad := stringList(v)
		if bad == nil && len(list) == 0 {
			bad = mismatch
		}
		return list, bad
	}}
}

func wordsOf(known []string) kind {
	example := "[" + quote(known[0]) + "]"
	want := "a list of " + strings.Join(known, ", ")
	return kind{want: want, example: example, parse: func(v cty.Value) (any, *wrong) {
		list, bad := stringList(v)
		if bad != nil || len(list) == 0 {
			return nil, mismatch
		}
		for i, word := range list {
			if !slices.Contains(known, word) {
				return nil, &wrong{
					problem: quote(word) + " is not one of them",
					remedy:  meant(word, known), element: i,
				}
			}
		}
		return list, nil
	}}
}

func stringList(v cty.Value) ([]string, *wrong) {
	if !v.Type().IsTupleType() && !v.Type().IsListType() && !v.Type().IsSetType() {
		return nil, mismatch
	}
	list := make([]string, 0, v.LengthInt())
	for i, e := range v.AsValueSlice() {
		if e.IsNull() || !isString(e) || e.AsString() == "" {
			return nil, &wrong{
				problem: "word " + strconv.Itoa(i+1) + " of the list is " + describe(e),
				remedy:  "write a string in quotes", element: i,
			}
		}
		list = append(list, e.AsString())
	}
	return list, nil
}

// stringMap parses names to strings, numbers or booleans as map[string]string.
func stringMap() kind {
	return kind{want: "a set of names with values", example: `{ NAME = "value" }`, parse: func(v cty.Value) (any, *wrong) {
		if !v.Type().IsObjectType() && !v.Type().IsMapType() {
			return nil, mismatch
		}
		m := make(map[string]string, v.LengthInt())
		for name, e := range v.AsValueMap() {
			if name == "" || strings.ContainsAny(name, "=\x00") {
				return nil, &wrong{problem: quote(name) + " is no variable's name: it is empty, or has '=' or a NUL byte", element: -1}
			}
			s, err := convert.Convert(e, cty.String)
			if err != nil || s.IsNull() {
				return nil, &wrong{problem: quote(name) + " is " + describe(e), element: -1}
			}
			m[name] = s.AsString()
		}
		return m, nil
	}}
}

// duration parses to a time.Duration above zero.
func duration(example string) kind {
	return written("a time with its unit", quote(example), func(s string) (any, *wrong) {
		d, err := time.ParseDuration(s)
		return matched(d, err == nil && d > 0)
	})
}

// silence parses to the time after which a machine that nothing has been heard from is lost.
// Kernels count it in seconds.
func silence() kind {
	return written(`whole seconds from "2s" to "1h"`, `"10s"`, func(s string) (any, *wrong) {
		d, err := time.ParseDuration(s)
		return matched(d, err == nil && d >= 2*time.Second && d <= time.Hour && d%time.Second == 0)
	})
}

func spin() kind {
	return written(`"auto", "0" or a time of at most "1s"`, `"auto"`, func(s string) (any, *wrong) {
		if s == "auto" {
			return Wait{Auto: true}, nil
		}
		d, err := time.ParseDuration(s)
		return matched(Wait{Spin: d}, err == nil && d >= 0 && d <= time.Second)
	})
}

// progress parses to how often procs that compute look after their messages.
func progress() kind {
	return written(`"0" or a time from "50us" to "1s"`, `"1ms"`, func(s string) (any, *wrong) {
		d, ok := ParseProgress(s)
		return matched(d, ok)
	})
}

// ParseProgress parses the value of progress in a wait block. ok is false if the value is not
// valid.
func ParseProgress(s string) (d time.Duration, ok bool) {
	d, err := time.ParseDuration(s)
	return d, err == nil && (d == 0 || d >= 50*time.Microsecond && d <= time.Second)
}

func checksum() kind {
	return written("a SHA-256 in 64 hex digits", `"..." with what sha256sum prints`, func(s string) (any, *wrong) {
		sum, err := hex.DecodeString(s)
		return matched(hex.EncodeToString(sum), err == nil && len(sum) == 32)
	})
}

// address parses to a place without a port.
func address() kind {
	return written("an IP address or a host name", `"127.0.0.2"`, func(s string) (any, *wrong) {
		p, bad := parseAddress(s)
		return p, bad
	})
}

// MaxProcs is the maximum number of procs of a host.
const MaxProcs = 1 << 20

// procs parses to how many procs a host has, an int64, which is 0 for "auto".
func procs() kind {
	k := integer(1, MaxProcs)
	number := k.parse
	k.want += ` or "auto"`
	k.parse = func(v cty.Value) (any, *wrong) {
		if isString(v) {
			switch s := v.AsString(); s {
			case "auto":
				return int64(0), nil
			default:
				return nil, &wrong{problem: quote(s) + " is neither a whole number from 1 to " + itoa(MaxProcs) + ` nor "auto"`,
					remedy: `write procs = 4, or procs = "auto" for one on each core of the machine, or as many as a scheduler gives`, element: -1}
			}
		}
		return number(v)
	}
	return k
}

// MaxHosts is the maximum number of hosts in a list of them.
const MaxHosts = 4096

// hostList parses to the []place of a compressed list.
func hostList() kind {
	return written("a string with a list of hosts", `"127.0.0.[2-5]"`, func(s string) (any, *wrong) {
		words, err := hostlist.Expand(s, MaxHosts)
		if fault, ok := errors.AsType[*hostlist.Error](err); ok {
			return nil, &wrong{problem: fault.Problem, remedy: fault.Remedy, element: -1}
		}
		list := make([]place, len(words))
		for i, word := range words {
			var bad *wrong
			if list[i], bad = parseAddress(word); bad != nil {
				return nil, bad
			}
		}
		return list, nil
	})
}

// networks parses to a []netip.Prefix that is not empty.
func networks() kind {
	return kind{want: "a list of numeric IP addresses or networks", example: `["192.0.2.9", "198.51.100.0/24"]`, parse: func(v cty.Value) (any, *wrong) {
		list, bad := stringList(v)
		if bad != nil || len(list) == 0 {
			return nil, mismatch
		}
		nets := make([]netip.Prefix, len(list))
		for i, s := range list {
			p, err := netip.ParsePrefix(s)
			if a, e := netip.ParseAddr(s); e == nil && a.Zone() == "" {
				p, err = netip.PrefixFrom(a, a.BitLen()), nil
			}
			if err != nil || p.Addr().Is4In6() {
				return nil, &wrong{problem: quote(s) + " is neither an address nor a network", element: i}
			}
			nets[i] = p
		}
		return nets, nil
	}}
}

// endpoint parses to a place with a port.
func endpoint(lowestPort int) kind {
	return written(wantEndpoint(lowestPort), `"127.0.0.1:7800"`, func(s string) (any, *wrong) {
		at, bad := parseEndpoint(s, lowestPort)
		if bad != nil {
			return nil, bad
		}
		return at, nil
	})
}

func wantEndpoint(lowestPort int) string {
	return fmt.Sprintf("an IP address or a host name, with a port from %d to 65535", lowestPort)
}

func parseEndpoint(s string, lowestPort int) (place, *wrong) {
	host, port, found := cutPort(s)
	if !found {
		return place{}, &wrong{problem: quote(s) + " has no port", element: -1}
	}
	at, bad := parseAddress(host)
	if bad != nil {
		if bad.remedy != "" {
			bad.remedy += ", and the port"
		}
		return place{}, bad
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || int(n) < lowestPort {
		return place{}, &wrong{problem: fmt.Sprintf("port %q is not a number from %d to 65535", port, lowestPort), element: -1}
	}
	at.port, at.listener = uint16(n), true
	return at, nil
}

// portRange parses to Ports without a position.
func portRange() kind {
	return written("a range of ports", `"7800-7899"`, func(s string) (any, *wrong) {
		p, ok := ParsePorts(s)
		return matched(p, ok)
	})
}

const maxServers = 8

// endpoints parses to a []place with ports, which has no place twice and is not empty.
func endpoints(lowestPort int) kind {
	want := fmt.Sprintf("a list of 1 to %d places, each %s", maxServers, wantEndpoint(lowestPort))
	return kind{want: want, example: `["192.0.2.7:7800", "192.0.2.8:7800"]`, parse: func(v cty.Value) (any, *wrong) {
		list, bad := stringList(v)
		switch {
		case bad != nil || len(list) == 0:
			return nil, mismatch
		case len(list) > maxServers:
			return nil, &wrong{problem: fmt.Sprintf("has %d places, and at most %d may be", len(list), maxServers), remedy: "remove some", element: -1}
		}
		places := make([]place, len(list))
		for i, s := range list {
			if places[i], bad = parseEndpoint(s, lowestPort); bad != nil {
				bad.element = i
				return nil, bad
			}
			if slices.Contains(places[:i], places[i]) {
				return nil, &wrong{problem: quote(s) + " is in the list already", remedy: "remove it", element: i}
			}
		}
		return places, nil
	}}
}

// metricsAt is an address of this machine, or all of them, with a port.
func metricsAt() kind {
	return written("an IP address with a port", `"127.0.0.1:9464"`, func(s string) (any, *wrong) {
		at, ok := parseMetricsAt(s)
		if !ok {
			return nil, &wrong{
				problem: quote(s) + " is no IP address with a port",
				remedy:  `write listen = "127.0.0.1:9464", or "0.0.0.0:9464" for all addresses of the machine`, element: -1,
			}
		}
		return place{addr: at.Addr(), port: at.Port(), listener: true}, nil
	})
}

func parseMetricsAt(s string) (at netip.AddrPort, ok bool) {
	at, err := netip.ParseAddrPort(s)
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), err == nil && at.Addr().Zone() == "" && !at.Addr().IsMulticast()
}

// loopbackAt is an address that only this machine reaches, with a port.
func loopbackAt() kind {
	return written("a loopback address with a port", `"127.0.0.1:9480"`, func(s string) (any, *wrong) {
		at, err := netip.ParseAddrPort(s)
		if err != nil || !at.Addr().IsLoopback() {
			return nil, &wrong{
				problem: quote(s) + " is no loopback address with a port",
				remedy:  `write listen = "127.0.0.1:9480", and reach it from elsewhere by ssh -L 9480:127.0.0.1:9480`, element: -1,
			}
		}
		return place{addr: at.Addr().Unmap(), port: at.Port(), listener: true}, nil
	})
}

// collectorAt is the base of the URLs of an OpenTelemetry collector. Secrets do not belong into job
// files.
func collectorAt() kind {
	return written("the URL of an OpenTelemetry collector", `"http://127.0.0.1:4318"`, func(s string) (any, *wrong) {
		if !isCollector(s) {
			return nil, &wrong{
				problem: quote(s) + " is no URL of a collector",
				remedy:  `write otlp = "http://127.0.0.1:4318" or an https one, and put what it asks for into OTEL_EXPORTER_OTLP_HEADERS`, element: -1,
			}
		}
		return s, nil
	})
}

func isCollector(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// cutPort splits "host:port" and "[host]:port".
func cutPort(s string) (host, port string, found bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 || (strings.Count(s, ":") > 1 && !strings.HasPrefix(s, "[")) {
		return "", "", false
	}
	host = strings.TrimSuffix(strings.TrimPrefix(s[:i], "["), "]")
	return host, s[i+1:], true
}

func hasPort(s, name string) *wrong {
	return &wrong{
		problem: quote(s) + " has a port",
		remedy:  "write " + quote(name) + ", and the port as an attribute of its own", element: -1,
	}
}

func parseAddress(s string) (place, *wrong) {
	addr, err := netip.ParseAddr(s)
	withPort, notBoth := netip.ParseAddrPort(s)
	name, port, _ := cutPort(s)
	switch {
	case err != nil && notBoth == nil:
		return place{}, hasPort(s, withPort.Addr().String())
	case err != nil && port != "" && isHostName(name):
		return place{}, hasPort(s, name)
	case err != nil && isHostName(s):
		return place{name: s}, nil
	case err != nil:
		return place{}, &wrong{problem: quote(s) + " is neither an IP address nor a host name", element: -1}
	case addr.IsUnspecified():
		return place{}, &wrong{
			problem: quote(s) + " means every address, and peers need one to dial",
			remedy:  "write the address of this machine that peers reach", element: -1,
		}
	case addr.Zone() != "" || addr.IsMulticast():
		return place{}, &wrong{problem: quote(s) + " is not an address that peers can dial", element: -1}
	}
	return place{addr: addr.Unmap()}, nil
}

func describe(v cty.Value) string {
	switch {
	case v.IsNull():
		return "null"
	case isString(v):
		return "the string " + quote(v.AsString())
	case v.Type() == cty.Number:
		return "the number " + v.AsBigFloat().Text('f', -1)
	case v.Type() == cty.Bool:
		return fmt.Sprintf("the truth value %t", v.True())
	case v.Type().IsTupleType() && v.LengthInt() == 0:
		return "an empty list"
	case v.CanIterateElements() && (v.Type().IsTupleType() || v.Type().IsListType()):
		return "a list"
	}
	return "an object"
}
