package relay

import (
	"errors"
	"testing"

	"github.com/openimpi/impi/core/link"
)

// A call that was on its way when another goroutine closed the link tells of the close, and
// not of what that looked like from below.
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
