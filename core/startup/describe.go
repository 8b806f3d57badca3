package startup

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
)

// Why a job cannot meet other worlds.
var (
	errMeetsForeign = errors.New("a site of the job is run by another MPI, so that the job has no token")
	errMeetsCards   = errors.New("not every proc has a business card")
)

// Describe returns what other worlds have to know about the job, encoded by [dynamic.Description],
// with the business card of each proc. All sites get the same result except for the order of a
// proc's offers. The error says why the job cannot meet other worlds.
func (j *Job) Describe(cardOf func(wire.WorldRank) *dynamic.Card) ([]byte, error) {
	if !j.AllOwn {
		return nil, errMeetsForeign
	}
	token := dynamic.Token(j.Token)
	d := dynamic.Description{World: token.World(), Secret: token.Meeting(), Limits: dynamic.Limits{
		DataLen: j.DataLen, AckMark: j.AckMark, HiWater: j.HiWater,
		TagUB: int32(j.TagUB), XSize: j.XSize, MaxLinear: j.MaxLinear,
	}}
	var last []byte
	for r, p := range j.Procs.All() {
		site := int(p.Client)
		if k := len(d.Groups) - 1; k >= 0 && d.Groups[k].Site == site && bytes.Equal(last, p.Card) {
			d.Groups[k].Count++
			continue
		}
		card := cardOf(r)
		if card == nil {
			return nil, fmt.Errorf("%w: rank %d, client %d", errMeetsCards, r, p.Client)
		}
		d.Groups, last = append(d.Groups, dynamic.Group{Count: 1, Site: site, Card: *card}), p.Card
	}
	return d.Append(nil)
}
