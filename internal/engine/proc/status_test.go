package proc

import (
	"testing"

	"github.com/openimpi/impi/core/datatype"
)

func TestStatusWords(t *testing.T) {
	for _, s := range []Status{
		{Source: 3, Tag: 9},
		{Source: AnySource, Tag: AnyTag, cancelled: true},
		{Source: 1, Tag: 2, bytes: 5<<32 + 1<<31 + 7, rep: datatype.External32},
	} {
		if got := StatusOf(s.Source, s.Tag, s.Words()); got != s {
			t.Errorf("%+v came back as %+v", s, got)
		}
	}
	if got := StatusOf(0, 0, StatusWords{-1, -1, 0, 99, 5}); got.Bytes() != 0 || got.rep != datatype.Native {
		t.Errorf("words without sense give %+v", got)
	}
}
