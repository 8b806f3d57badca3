package inspect

import (
	"testing"
	"time"

	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/internal/drive"
	"github.com/openimpi/impi/internal/links"
	local "github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/resumable"
	"github.com/openimpi/impi/internal/wireup"
)

// TestChannelWithoutAConnection: an end that has none says so.
func TestChannelWithoutAConnection(t *testing.T) {
	d, err := drive.New(local.Local{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := d.NewResumable(&drive.Endpoint{}, resume.ResumableID{}, resumable.Window, drive.ResumeRules{Dialler: true}, nil)
	var c links.Channel
	if describeResumable(r, &c); c.State != links.StateLost || !c.Resumable || c.Lost != "" || c.Resumes != 0 {
		t.Errorf("%+v", c)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// TestLostLink: a lost link has the time at which it was lost, another one that at which it was
// made.
func TestLostLink(t *testing.T) {
	now, made := time.Unix(1000, 0), time.Unix(100, 0)
	for state, want := range map[links.State]int64{links.StateLost: 993, links.StateLinked: 100} {
		v := links.View{State: state, Since: made}
		if sinceLost(&v, &wireup.LinkStats{Disconnected: true, DisconnectedFor: int64(7 * time.Second)}, now); v.Since.Unix() != want {
			t.Errorf("%s since %d, want %d", state, v.Since.Unix(), want)
		}
	}
}
