package compress

import (
	"strings"
	"testing"
)

func TestFramesAreReadAsWritten(t *testing.T) {
	for _, f := range []frame{
		{false, 1, 1}, {false, MaxPlain, MaxPlain}, {true, 2, 1}, {true, MaxCompressed, MaxCompressed - 1}, {true, MaxCompressed, 1},
	} {
		var b [headerSize]byte
		f.put(b[:])
		if got, err := parse(b[:]); err != nil || got != f {
			t.Errorf("%+v is read as %+v, %v", f, got, err)
		}
	}
}

func TestFramesThatCannotBe(t *testing.T) {
	for want, b := range map[string][headerSize]byte{
		"version 2, not 1": {2, 0, 0, 0, 1, 0, 0, 1},
		"kind 2":           {1, 2, 0, 0, 1, 0, 0, 1},
		"0 plain bytes in a body of 0; from 1 to 1048576 can be":                 {1, 0},
		"1048577 plain bytes in a body of 1048577":                               {1, 0, 0x10, 0, 1, 0x10, 0, 1},
		"2 plain bytes in a body of 1":                                           {1, 0, 0, 0, 2, 0, 0, 1},
		"196609 bytes compressed to 1; at most 196608 can be":                    {1, 1, 3, 0, 1, 0, 0, 1},
		"9 bytes compressed to 9":                                                {1, 1, 0, 0, 9, 0, 0, 9},
		"9 bytes compressed to 0":                                                {1, 1, 0, 0, 9, 0, 0, 0},
		"16777215 bytes compressed to 16777214; at most 196608 can be, to fewer": {1, 1, 255, 255, 255, 255, 255, 254},
	} {
		if _, err := parse(b[:]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%x: %v, want %q", b, err, want)
		}
	}
}
