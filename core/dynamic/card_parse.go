package dynamic

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
	"unsafe"
)

const cardPrefix = "impi-card/"

// ParseBusinessCard parses a card. Unknown fields are left out of the result: a later version of
// the software may add some in version 1. It keeps nothing of text.
func ParseBusinessCard(text []byte) (BusinessCard, error) {
	c, err := parseCard(text)
	if err != nil {
		return BusinessCard{}, fmt.Errorf("dynamic: %w", err)
	}
	return c, nil
}

func parseCard(text []byte) (c BusinessCard, err error) {
	switch {
	case len(text) > MaxCard:
		return c, fmt.Errorf("%w: %d bytes, more than %d", ErrCard, len(text), MaxCard)
	case !utf8.Valid(text):
		return c, fmt.Errorf("%w: not UTF-8", ErrCard)
	}
	first, rest, more := strings.Cut(string(text), " ")
	version, isCard := strings.CutPrefix(first, cardPrefix)
	if !isCard {
		return c, fmt.Errorf("%w: it does not begin with %q", ErrCard, cardPrefix)
	}
	if c.Version, err = parseVersion(version); err != nil {
		return c, err
	}
	for more {
		var field string
		field, rest, more = strings.Cut(rest, " ")
		if err := c.parseField(field); err != nil {
			return c, err
		}
	}
	return c, c.check()
}

func parseVersion(s string) (int, error) {
	v, err := strconv.ParseUint(s, 10, 16)
	if err != nil || strconv.FormatUint(v, 10) != s {
		return 0, fmt.Errorf("%w: version %q", ErrCard, s)
	}
	if v != CardVersion {
		return 0, fmt.Errorf("%w %d: this program knows %d", ErrCardVersion, v, CardVersion)
	}
	return int(v), nil
}

func (c *BusinessCard) parseField(field string) error {
	key, value, ok := strings.Cut(field, "=")
	if !ok || !isName(key) || !isPlain(value) {
		return fmt.Errorf("%w: field %q is not a name, =, and text", ErrCard, field)
	}
	switch key {
	case "node":
		return once(&c.Node, field, value)
	case "order":
		return once(&c.ByteOrder, field, value)
	case "offer":
		transport, address, ok := strings.Cut(value, ":")
		if !ok {
			return fmt.Errorf("%w: %q has no transport and address", ErrCard, field)
		}
		c.Addresses = append(c.Addresses, TransportAddress{transport, address})
	case "unexpected":
		return c.parseUnexpected(field, value)
	case "feature":
		c.Features = append(c.Features, value)
	}
	return nil
}

func (c *BusinessCard) parseUnexpected(field, value string) error {
	v, err := strconv.ParseInt(value, 10, 64)
	if err != nil || v < 1 || strconv.FormatInt(v, 10) != value {
		return fmt.Errorf("%w: %q is no number of bytes", ErrCard, field)
	}
	if c.Unexpected != 0 {
		return fmt.Errorf("%w: second %q", ErrCard, field)
	}
	c.Unexpected = v
	return nil
}

func once(to *string, field, value string) error {
	if *to != "" {
		return fmt.Errorf("%w: second %q", ErrCard, field)
	}
	*to = value
	return nil
}

func (c *BusinessCard) check() error {
	switch {
	case c.Unexpected < 0 || c.Unexpected > MaxUnexpected:
		return fmt.Errorf("%w: %d bytes of unexpected messages, at most %d", ErrCard, c.Unexpected, int64(MaxUnexpected))
	case c.Node != "" && !isPlain(c.Node):
		return fmt.Errorf("%w: node %q", ErrCard, c.Node)
	case c.ByteOrder != "" && c.ByteOrder != BigEndian && c.ByteOrder != LittleEndian:
		return fmt.Errorf("%w: byte order %q is neither %s nor %s", ErrCard, c.ByteOrder, BigEndian, LittleEndian)
	case len(c.Addresses) > MaxAddresses:
		return fmt.Errorf("%w: %d addresses, more than %d", ErrCard, len(c.Addresses), MaxAddresses)
	case len(c.Features) > MaxFeatures:
		return fmt.Errorf("%w: %d features, more than %d", ErrCard, len(c.Features), MaxFeatures)
	}
	for i, o := range c.Addresses {
		if !isName(o.Transport) || !isPlain(o.Address) {
			return fmt.Errorf("%w: transport %q at %q", ErrCard, o.Transport, o.Address)
		}
		if slices.Contains(c.Addresses[:i], o) {
			return fmt.Errorf("%w: two addresses of %s at %s", ErrCard, o.Transport, o.Address)
		}
	}
	for i, f := range c.Features {
		if !isName(f) {
			return fmt.Errorf("%w: feature %q", ErrCard, f)
		}
		if slices.Contains(c.Features[:i], f) {
			return fmt.Errorf("%w: feature %s twice", ErrCard, f)
		}
	}
	return nil
}

// isName reports whether s is a name as transports have them: [a-z][a-z0-9-]*.
func isName(s string) bool {
	if s == "" || len(s) > MaxName || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' })
}

// isPlain reports whether s is printable text without spaces.
func isPlain(s string) bool {
	if s == "" || !utf8.ValidString(s) {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) })
}

// NodeOf returns the Node of a card that ParseBusinessCard accepts. The result shares text's
// memory, which must not change.
func NodeOf(text []byte) string {
	_, rest, ok := strings.Cut(unsafe.String(unsafe.SliceData(text), len(text)), " ")
	for ok {
		var field string
		field, rest, ok = strings.Cut(rest, " ")
		if node, is := strings.CutPrefix(field, "node="); is {
			return node
		}
	}
	return ""
}
