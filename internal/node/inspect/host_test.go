package inspect

import (
	"testing"

	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/internal/drive"
	"github.com/openimpi/impi/internal/links"
	local "github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/resumable"
)

// TestChannelWithoutAConnection: an end that has none says so.
func TestChannelWithoutAConnection(t *testing.T) {
	d, err := drive.New(local.Local{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := d.NewResumable(&drive.Endpoint{}, resume.Session{}, resumable.Window, drive.Terms{Dialler: true}, nil)
	var c links.Channel
	if describeResumable(r, &c); c.State != links.StateLost || !c.Resumable || c.Lost != "" || c.Resumes != 0 {
		t.Errorf("%+v", c)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
