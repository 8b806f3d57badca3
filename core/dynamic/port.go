package dynamic

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/openimpi/impi/core/wire"
)

// MaxPortName is the maximum size in bytes of a port's name: MPI_MAX_PORT_NAME of the MPI ABI
// (MPI-4.1, 11.9.2), without the terminating zero.
const MaxPortName = 1023

// ErrPort means that a text is not the name of a port (MPI_ERR_PORT; MPI-4.1, 11.9.3), or not of a
// port of impi.
var ErrPort = errors.New("malformed port name")

// Port is where a proc accepts connections of other worlds (MPI-4.1, 11.9.1). Its name is all that
// they need: how the proc can be reached, and a key without which no proc can connect. The key is
// random, made for this port, and gives access to nothing else.
type Port struct {
	Key    Token
	Opener WorldProc
	Card   BusinessCard // of the proc that opened it
}

// Name returns the name of the port's key, by which its node finds the key. It does not reveal the
// key.
func (p *Port) Name() WorldID { return p.Key.World() }

// AppendText appends the port's name: one word of letters, digits and . _ : / = , @ - + %,
// so that it can be given to a shell, a file or another program as it is.
//
//	impi-port/1+key=0a1b...+world=2c3d...+rank=0+impi-card/1+node=5f0c+offer=tcp:127.0.0.2:5001
//
// Addresses that do not fit are left out, the last ones first. It is ErrPort if no
// offer fits, or there is none, and ErrCard if the card is malformed.
func (p *Port) AppendText(b []byte) ([]byte, error) {
	card := p.Card
	for ; len(card.Addresses) > 0; card.Addresses = card.Addresses[:len(card.Addresses)-1] {
		text, err := card.AppendText(nil)
		if err != nil && len(card.Addresses) == len(p.Card.Addresses) && !tooLong(&card) {
			return b, err
		}
		name := portWord(fmt.Sprintf("%s%d key=%x world=%v rank=%d %s", portPrefix, portVersion, p.Key, p.Opener.World, p.Opener.Rank, text))
		if err == nil && len(name) <= MaxPortName {
			return append(b, name...), nil
		}
	}
	return b, fmt.Errorf("dynamic: %w: no address of the opener fits into %d bytes", ErrPort, MaxPortName)
}

// tooLong reports whether a card is correct except for its length.
func tooLong(c *BusinessCard) bool { return c.Version == CardVersion && c.check() == nil }

const (
	portPrefix  = "impi-port/"
	portVersion = 1
)

// portWord returns text as one word: + for spaces, and % with two digits for what shells and others
// could misread.
func portWord(text string) string {
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case c == ' ':
			b.WriteByte('+')
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("._:/=,@-", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	return b.String()
}

func portText(word string) (string, error) {
	b := make([]byte, 0, len(word))
	for i := 0; i < len(word); i++ {
		switch c := word[i]; c {
		case '+':
			b = append(b, ' ')
		case '%':
			d, err := hex.DecodeString(word[i+1 : min(i+3, len(word))])
			if err != nil || len(d) != 1 {
				return "", fmt.Errorf("%w: %q is not %% and two hexadecimal digits", ErrPort, word[i:min(i+3, len(word))])
			}
			b = append(b, d[0])
			i += 2
		default:
			b = append(b, c)
		}
	}
	return string(b), nil
}

// ParsePort parses a port's name. White space around it is ignored. The errors do not contain the
// key.
func ParsePort(name string) (Port, error) {
	p, err := parsePort(strings.TrimSpace(name))
	if err != nil {
		return Port{}, fmt.Errorf("dynamic: %w", err)
	}
	return p, nil
}

func parsePort(name string) (p Port, err error) {
	switch {
	case len(name) > MaxPortName:
		return p, fmt.Errorf("%w: %d bytes, more than %d", ErrPort, len(name), MaxPortName)
	case !strings.HasPrefix(name, portPrefix):
		return p, fmt.Errorf("%w: it does not begin with %q", ErrPort, portPrefix)
	}
	text, err := portText(name)
	if err != nil {
		return p, err
	}
	head, card, ok := strings.Cut(text, " "+cardPrefix)
	if !ok {
		return p, fmt.Errorf("%w: it has no business card", ErrPort)
	}
	if err := p.parseHead(head); err != nil {
		return p, err
	}
	if p.Card, err = parseCard([]byte(cardPrefix + card)); err != nil {
		return p, fmt.Errorf("%w: %w", ErrPort, err)
	}
	if len(p.Card.Addresses) == 0 {
		return p, fmt.Errorf("%w: its card has no address of the opener", ErrPort)
	}
	return p, nil
}

// parseHead reads the fields before the card: version, key, world and rank, in this order. It
// ignores others behind them, which a later writer of version 1 may add.
func (p *Port) parseHead(head string) error {
	fields := strings.Split(head, " ")
	if v := strings.TrimPrefix(fields[0], portPrefix); v != strconv.Itoa(portVersion) {
		return fmt.Errorf("%w: version %q, this program knows %d", ErrPort, v, portVersion)
	}
	if len(fields) < 4 {
		return fmt.Errorf("%w: it ends before key, world and rank", ErrPort)
	}
	if !fixedHex(p.Key[:], fields[1], "key=") {
		return fmt.Errorf("%w: no key of %d hexadecimal digits", ErrPort, 2*TokenSize)
	}
	if !fixedHex(p.Opener.World[:], fields[2], "world=") {
		return fmt.Errorf("%w: %q is not a world", ErrPort, fields[2])
	}
	text, ok := strings.CutPrefix(fields[3], "rank=")
	rank, err := strconv.ParseInt(text, 10, 32)
	if !ok || err != nil || rank < 0 {
		return fmt.Errorf("%w: %q is not a rank", ErrPort, fields[3])
	}
	p.Opener.Rank = wire.WorldRank(rank)
	return nil
}

// fixedHex decodes field, which must be exactly as many bytes as to has.
func fixedHex(to []byte, field, name string) bool {
	digits, ok := strings.CutPrefix(field, name)
	if !ok || len(digits) != 2*len(to) {
		return false
	}
	_, err := hex.Decode(to, []byte(digits))
	return err == nil
}
