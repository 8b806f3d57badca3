package startup

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/wire"
)

func TestParseKey(t *testing.T) {
	for s, want := range map[string]uint64{
		"0": 0, "5678": 5678, " 5678\n": 5678, "18446744073709551615": 1<<64 - 1, "-1": 1<<64 - 1, "-9223372036854775808": 1 << 63,
	} {
		if k, err := ParseKey(s); k != want || err != nil {
			t.Errorf("%q is %d: %v", s, k, err)
		}
	}
	for _, s := range []string{"", "0x10", "secret", "18446744073709551616", "1 2", "1e3"} {
		_, err := ParseKey(s)
		if !errors.Is(err, ErrConfig) {
			t.Errorf("%q: %v", s, err)
		}
		if s != "" && strings.Contains(err.Error(), s) {
			t.Errorf("the error has the key: %v", err)
		}
	}
}

// TestKeyIsNotPrinted: no verb shows it.
func TestKeyIsNotPrinted(t *testing.T) {
	a := Auth{None: true, HasKey: true, Key: 987654321}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if s := fmt.Sprintf(verb, a) + fmt.Sprintf(verb, ServerConfig{Auth: a}); strings.Contains(s, "987654321") || strings.Contains(s, "0x3ade68b1") {
			t.Errorf("%s: %s", verb, s)
		}
	}
}

func TestKeyIs(t *testing.T) {
	right := wire.AppendKey(nil, 5678)
	if !(Auth{HasKey: true, Key: 5678}).keyIs(right) {
		t.Error("right key refused")
	}
	if (Auth{HasKey: true, Key: 5679}).keyIs(right) || (Auth{Key: 5678}).keyIs(right) || (Auth{HasKey: true, Key: 5678}).keyIs(right[:7]) {
		t.Error("wrong key accepted")
	}
}
