package measured

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

var keys = map[string]string{"a": "a name in quotes", "b": "a name in quotes", "rtt_ms": "a number", "rate_mbit_s": "a number", "pairs": "a list of pairs"}

// parse reads a file's text. It returns what is wrong, for whoever has edited it, and in which
// line.
func (f *File) parse(text []byte) (line int, problem string) {
	if len(bytes.TrimSpace(text)) == 0 {
		return 0, ""
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(f); err != nil {
		return explain(text, err)
	}
	end := d.InputOffset()
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return lineAt(text, end+1), "something follows the closing brace"
	}
	for i, p := range f.Pairs {
		if problem := p.wrong(); problem != "" {
			return 0, fmt.Sprintf("pair %d: %s", i+1, problem)
		}
	}
	return 0, ""
}

func (p *Pair) wrong() string {
	switch {
	case p.A == "" || p.B == "":
		return "a and b must be the names of two sites"
	case p.RTT < 0 || p.RTT > longest.Seconds()*1e3:
		return fmt.Sprintf("sites %q and %q: rtt_ms is %v, and must be from 0 to %d", p.A, p.B, p.RTT, longest.Milliseconds())
	case p.Rate < 0 || p.Rate > mostRate:
		return fmt.Sprintf("sites %q and %q: rate_mbit_s is %v, and must be from 0 to %d", p.A, p.B, p.Rate, int64(mostRate))
	}
	return ""
}

func explain(text []byte, err error) (line int, problem string) {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return lineAt(text, int64(len(text))), "it ends in the middle: a brace, a bracket or a quotation mark is not closed"
	case errors.As(err, &syntax):
		return lineAt(text, syntax.Offset), "it is not JSON: " + syntax.Error()
	case errors.As(err, &kind):
		name := kind.Field[strings.LastIndexByte(kind.Field, '.')+1:]
		if want := keys[name]; want != "" && kind.Value != "object" {
			return lineAt(text, kind.Offset), fmt.Sprintf("%s is a %s, and must be %s", name, kind.Value, want)
		}
		return lineAt(text, kind.Offset), fmt.Sprintf(`something is in a wrong place, which JSON calls %s: the file is { "pairs": [ { "a": ..., "b": ..., "rtt_ms": ... } ] }`, kind.Value)
	}
	if _, name, unknown := strings.Cut(err.Error(), "unknown field "); unknown {
		if key, err := strconv.Unquote(name); err == nil {
			return lineOf(text, key), fmt.Sprintf("the key %q is not known: the file has the key pairs, and each pair a, b, rtt_ms, rate_mbit_s and measured", key)
		}
	}
	return lineOf(text, "measured"), `the times called measured must be as in "2026-11-28T09:30:00Z"` // only times decode themselves
}

// lineAt is the line of the byte before offset, where reading has ended.
func lineAt(text []byte, offset int64) int {
	return 1 + bytes.Count(text[:max(0, min(offset-1, int64(len(text))))], []byte{'\n'})
}

// lineOf is the line where a key is found first, if it is written without escapes; else 0.
func lineOf(text []byte, key string) int {
	i := bytes.Index(text, []byte(`"`+key+`"`))
	if i < 0 {
		return 0
	}
	return lineAt(text, int64(i)+1)
}
