package meet

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/startup"
)

// Why a job cannot meet other worlds.
var (
	errMeetsForeign = errors.New("a site of the job is run by another MPI, so that the job has no token")
	errMeetsCards   = errors.New("not every proc has a business card")
)

// Describe gives what other worlds have to know of this job, as core/dynamic
// encodes it. All sites find the same but for the order of a proc's offers.
func Describe(job *startup.Job, cards []*dynamic.Card, check bool) ([]byte, error) {
	if !job.AllOwn {
		return nil, errMeetsForeign
	}
	token := dynamic.Token(job.Token)
	d := dynamic.Description{World: token.World(), Secret: token.Meeting(), Limits: dynamic.Limits{
		DataLen: job.DataLen, AckMark: job.AckMark, HiWater: job.HiWater,
		TagUB: int32(job.TagUB), XSize: job.XSize, MaxLinear: job.MaxLinear, Check: check,
	}}
	last := ""
	for r, p := range job.Procs {
		if cards[r] == nil {
			return nil, fmt.Errorf("%w: rank %d, client %d", errMeetsCards, r, p.Client)
		}
		site, card := int(p.Client), string(p.Card)
		if k := len(d.Groups) - 1; k >= 0 && d.Groups[k].Site == site && last == card {
			d.Groups[k].Count++
			continue
		}
		d.Groups, last = append(d.Groups, dynamic.Group{Count: 1, Site: site, Card: *cards[r]}), card
	}
	return d.Append(nil)
}
