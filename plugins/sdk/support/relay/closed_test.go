package relay

import (
	"errors"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// A call during which another goroutine closes the link reports the close, not the error
// that the close causes below.
func TestBrokenByItsOwnClose(t *testing.T) {
	var l Link
	e := end(ringEnd{})
	l.end.Store(&e)
	if err := l.explain(link.ErrBroken); !errors.Is(err, link.ErrBroken) {
		t.Errorf("of a link in use: %v", err)
	}
	l.end.Store(nil)
	if err := l.explain(link.ErrBroken); !errors.Is(err, link.ErrClosed) {
		t.Errorf("of a closed link: %v", err)
	}
}
