package pmi

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Bounds of what a process manager may send, in bytes.
const (
	maxLine    = 64 << 10 // a line of PMI-1
	maxMessage = 64 << 10 // a message of PMI-2
	maxFields  = 64       // of a line or a message
)

// digits is how many digits a message of PMI-2 begins with.
const digits = 6

// fields is a message in the order in which it was written. It is coded here, since no Go library
// reads the process managers' formats.
type fields [][2]string

func (f fields) get(key string) (string, bool) {
	for _, kv := range f {
		if kv[0] == key {
			return kv[1], true
		}
	}
	return "", false
}

func (f fields) value(key string) string {
	v, _ := f.get(key)
	return v
}

func (f fields) with(word, of string) (fields, error) {
	key, value, found := strings.Cut(word, "=")
	if !found || key == "" {
		return nil, fmt.Errorf("%.40q is no key=value", word)
	}
	if len(f) == maxFields {
		return nil, fmt.Errorf("a %s has more than %d fields", of, maxFields)
	}
	return append(f, [2]string{key, value}), nil
}

func (f fields) line() []byte {
	var b bytes.Buffer
	for i, kv := range f {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(kv[0] + "=" + kv[1])
	}
	b.WriteByte('\n')
	return b.Bytes()
}

func (f fields) message() []byte {
	var b bytes.Buffer
	for _, kv := range f {
		b.WriteString(kv[0] + "=" + kv[1] + ";")
	}
	return append(fmt.Appendf(nil, "%*d", digits, b.Len()), b.Bytes()...)
}

// parseLine reads a message of PMI-1 from the beginning of b, and says how many bytes it has; 0 if
// its end has not come. msg, which is for people, is what is left up to value or the end of the
// line.
func parseLine(b []byte) (f fields, n int, err error) {
	end := bytes.IndexByte(b, '\n')
	if end > maxLine || end < 0 && len(b) > maxLine {
		return nil, 0, fmt.Errorf("a line has more than %d bytes", maxLine)
	}
	if end < 0 {
		return nil, 0, nil
	}
	for word := range strings.FieldsSeq(string(b[:end])) {
		if !strings.Contains(word, "=") && len(f) > 0 && f[len(f)-1][0] == "msg" { // words for people, with blanks between
			f[len(f)-1][1] += " " + word
		} else if f, err = f.with(word, "line"); err != nil {
			return nil, 0, err
		}
	}
	return f, end + 1, nil
}

// parseMessage reads a message of PMI-2 from the beginning of b, and says how many bytes it has; 0
// if its end has not come.
func parseMessage(b []byte) (f fields, n int, err error) {
	head := strings.TrimLeft(string(b[:min(digits, len(b))]), " ")
	if len(b) >= digits {
		head = strings.TrimRight(head, " ")
	}
	size, err := strconv.Atoi(head)
	if len(b) < digits && strings.Trim(head, "0123456789 ") == "" {
		return nil, 0, nil
	}
	if err != nil || size < 0 || head[0] == '+' {
		return nil, 0, fmt.Errorf("%.6q is no length of a message", b)
	}
	if size > maxMessage {
		return nil, 0, fmt.Errorf("a message has %d bytes, more than %d", size, maxMessage)
	}
	if len(b) < digits+size {
		return nil, 0, nil
	}
	rest := string(b[digits : digits+size])
	for rest != "" {
		var word string
		word, rest = cutField(rest)
		if f, err = f.with(word, "message"); err != nil {
			return nil, 0, err
		}
	}
	return f, digits + size, nil
}

// cutField cuts text at the first ; that is not doubled, and replaces each doubled one before it by
// one.
func cutField(text string) (field, rest string) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == ';' {
			if i+1 == len(text) || text[i+1] != ';' {
				return b.String(), text[i+1:]
			}
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String(), ""
}
