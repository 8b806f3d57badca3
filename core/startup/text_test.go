package startup

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/wire"
)

// Text form of the protocol's messages, as the scripts in testdata have it.

func labelFrom(t testing.TB, s string) wire.Label {
	for _, info := range append(wire.StandardLabels(), wire.LabelInfo{Label: wire.LabelCards, Name: "X_CARDS"}) {
		if info.Name == s {
			return info.Label
		}
	}
	n, err := strconv.ParseInt(s, 0, 64)
	if err != nil {
		t.Fatalf("label %q", s)
	}
	return wire.Label(n)
}

func bytesFrom(t testing.TB, words []string) []byte {
	b, err := hex.DecodeString(strings.Join(words, ""))
	if err != nil {
		t.Fatalf("%q: %v", words, err)
	}
	return b
}

func maskFrom(t testing.TB, s string) (m wire.ClientMask) {
	for _, c := range strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune("{,}", r) }) {
		n, err := strconv.Atoi(c)
		if err != nil {
			t.Fatalf("mask %q", s)
		}
		m = m.With(wire.ClientRank(n))
	}
	return m
}

func authFrom(t testing.TB, s string) wire.AuthMask {
	switch s {
	case "NONE":
		return wire.AuthNone
	case "KEY":
		return wire.AuthKey
	case "NONE+KEY":
		return wire.AuthNone | wire.AuthKey
	}
	n, err := strconv.ParseUint(s, 0, 32)
	if err != nil {
		t.Fatalf("mask %q", s)
	}
	return wire.AuthMask(n)
}

func intFrom(t testing.TB, s string) int64 {
	n, err := strconv.ParseInt(s, 0, 64)
	if err != nil {
		t.Fatalf("number %q", s)
	}
	return n
}

// encode makes bytes from lines, one message each.
func encode(t testing.TB, lines string) (b []byte) {
	for _, line := range strings.Split(lines, "\n") {
		w := strings.Fields(line)
		if len(w) == 0 {
			continue
		}
		switch w[0] {
		case "AUTH":
			b = wire.AppendAuth(b, authFrom(t, w[1]))
		case "CHOOSE":
			b = append(b, byteswap(uint32(intFrom(t, w[1])))...)
			b = append(b, byteswap(uint32(intFrom(t, w[2])))...)
		case "KEY":
			b = wire.AppendKey(b, uint64(intFrom(t, w[1])))
		case "IMPI":
			b = wire.AppendIMPI(b, int32(intFrom(t, w[1])))
		case "COLL":
			b = wire.AppendColl(b, labelFrom(t, w[1]), bytesFrom(t, w[2:]))
		case "ANSWER":
			data := bytesFrom(t, w[3:])
			b = append(wire.AppendAnswer(b, labelFrom(t, w[1]), maskFrom(t, w[2]), len(data)), data...)
		case "DONE":
			b = wire.AppendCommand(b, wire.CmdDone, 0)
		case "FINI":
			b = wire.AppendCommand(b, wire.CmdFini, 0)
		case "INIF":
			b = wire.AppendCommand(b, wire.CmdFiniReversed, 0)
		case "FAIL":
			b = wire.AppendFail(b, strings.Join(w[1:], " "))
		case "HEX":
			b = append(b, bytesFrom(t, w[1:])...)
		default:
			t.Fatalf("unknown message %q", line)
		}
	}
	return b
}

func byteswap(v uint32) []byte { return []byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)} }

// decode gives text for bytes. Those of the server have a mask in COLL. A
// choice of mechanism, which has no header, must come alone.
func decode(t testing.TB, b []byte, fromServer bool) (lines []string) {
	for len(b) > 0 {
		if len(b) == 8 && b[0] == 0 && fromServer {
			m, n := wire.ParseAuthChoice(b)
			return append(lines, fmt.Sprintf("CHOOSE %v %d", m, n))
		}
		if len(b) >= 8 && b[0] == 0 {
			lines = append(lines, fmt.Sprintf("KEY %d", int64(b[6])<<8|int64(b[7])))
			b = b[8:]
			continue
		}
		cmd, n := wire.ParseCommand(b)
		payload := b[wire.CommandSize:][:n]
		b = b[wire.CommandSize+n:]
		line := cmd.String()
		switch cmd {
		case wire.CmdAuth:
			m, _ := wire.ParseAuth(payload)
			line += " " + m.String()
		case wire.CmdIMPI:
			v, _ := wire.ParseIMPI(payload)
			line += fmt.Sprint(" ", v)
		case wire.CmdColl:
			line = decodeColl(t, payload, fromServer)
		case wire.CmdFail:
			line += " " + string(payload)
		case wire.CmdDone, wire.CmdFini, wire.CmdFiniReversed: // say no more
		}
		lines = append(lines, line)
	}
	return lines
}

func decodeColl(t testing.TB, payload []byte, fromServer bool) string {
	if fromServer {
		l, m, data, err := wire.ParseAnswer(payload)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(fmt.Sprintf("ANSWER %v %v %s", l, m, inWords(data)))
	}
	l, data, err := wire.ParseColl(payload)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(fmt.Sprintf("COLL %v %s", l, inWords(data)))
}

// inWords gives hex in groups of four bytes, and long values by their length.
func inWords(b []byte) string {
	if len(b) > 64 {
		return fmt.Sprintf("(%d bytes)", len(b))
	}
	var s []string
	for len(b) > 4 {
		s = append(s, hex.EncodeToString(b[:4]))
		b = b[4:]
	}
	return strings.Join(append(s, hex.EncodeToString(b)), " ")
}
