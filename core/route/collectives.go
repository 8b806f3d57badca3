package route

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
)

// Between sites that all run this library the algorithms of collective operations are free (IMPI
// ch.4 prescribes those between others), but all members must choose the same one. So the choice is
// derived from the business cards of all sites, which all members have.

// CollectivesChoice selects how sites exchange messages in collective operations.
type CollectivesChoice string

// The choices.
const (
	CollectivesAuto   CollectivesChoice = "auto"   // according to measurements
	CollectivesDirect CollectivesChoice = "direct" // all at once
	CollectivesTree   CollectivesChoice = "tree"   // up and down a tree
)

// Collectives describes how a job's sites exchange messages in collective operations.
type Collectives struct {
	Direct     int           `json:"direct"`           // up to this many sites all at once, more by trees; 0: trees
	DirectLong int           `json:"direct_long"`      // minimum bytes for Allreduce of several sites part by part
	RTT        time.Duration `json:"rtt_ns,omitempty"` // the longest that a site has measured; 0: none has
	Rate       int64         `json:"rate,omitempty"`   // the lowest that a site has measured, bytes per second; 0: none has
	Why        string        `json:"why"`              // reason of the choice
}

const (
	collectivesFeature = "collectives-"
	rttFeature         = "collectives-rtt-us-"
	rateFeature        = "collectives-rate-kb-"

	usualDirect = 16      // number of sites, if nothing was measured
	usualLong   = 1 << 20 // number of bytes, if nothing was measured
	leastLong   = 64 << 10

	// perMessage is what one more message costs the process that stands for a site, to send one and to
	// receive one.
	perMessage = 10 * time.Microsecond
)

// CollectivesFeatures returns the features on a site's cards: the choice of its file, the longest
// round trip to another site, and the lowest rate in bytes per second. Values that were not
// measured are 0.
func CollectivesFeatures(choice CollectivesChoice, rtt time.Duration, rate int64) []string {
	features := []string{collectivesFeature + string(cmp.Or(choice, CollectivesAuto))}
	if rtt > 0 {
		features = append(features, rttFeature+strconv.FormatInt(max(1, rtt.Microseconds()), 10))
	}
	if kb := rate / 1000; kb > 0 {
		features = append(features, rateFeature+strconv.FormatInt(kb, 10))
	}
	return features
}

// number returns the number at the end of a feature of the card, 0 if there is none, or none that
// is possible.
func number(c *dynamic.BusinessCard, feature string) int64 {
	for _, f := range c.Features {
		if text, ok := strings.CutPrefix(f, feature); ok {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n < 0 || n > 1<<40 {
				return 0
			}
			return n
		}
	}
	return 0
}

// PlanCollectives returns how sites with these cards, one for each site, exchange messages. A site
// without a card, or without one of these features on it, supports trees only. name returns the
// name of a site, by its index in cards.
func PlanCollectives(cards []*dynamic.BusinessCard, name func(int) string) (c Collectives) {
	tree, direct := -1, -1 // first site that chooses each
	for i, card := range cards {
		if card == nil || !card.Has(collectivesFeature+string(CollectivesAuto)) && !card.Has(collectivesFeature+string(CollectivesDirect)) &&
			!card.Has(collectivesFeature+string(CollectivesTree)) {
			return Collectives{Why: name(i) + " does not say that it knows another way"}
		}
		if card.Has(collectivesFeature+string(CollectivesTree)) && tree < 0 {
			tree = i
		}
		if card.Has(collectivesFeature+string(CollectivesDirect)) && direct < 0 {
			direct = i
		}
		c.RTT = max(c.RTT, time.Duration(number(card, rttFeature))*time.Microsecond)
		if rate := number(card, rateFeature) * 1000; rate > 0 && (c.Rate == 0 || rate < c.Rate) {
			c.Rate = rate
		}
	}
	c.DirectLong = c.long(len(cards))
	switch {
	case tree >= 0:
		c.Direct, c.Why = 0, "the file of "+name(tree)+" says so"
	case direct >= 0:
		c.Direct, c.Why = wire.MaxClients, "the file of "+name(direct)+" says so"
	case c.RTT == 0:
		c.Direct, c.Why = usualDirect, "no round trip between sites was measured"
	default:
		c.Direct = min(wire.MaxClients, max(2, int(c.RTT/perMessage)))
		c.Why = fmt.Sprintf("the longest round trip that was measured is %v", c.RTT)
	}
	return c
}

// long returns the bytes from which it takes longer to send a vector to all other sites at once
// than to wait once more for others, half a round trip, and to send less: with s sites s-1 vectors
// leave a site, and part by part 2(s-1)/s.
func (c *Collectives) long(sites int) int {
	if c.RTT == 0 || c.Rate == 0 || sites < 3 {
		return usualLong
	}
	vectors := float64(sites-1) * float64(sites-2) / float64(sites)
	return int(min(1<<30, max(leastLong, c.RTT.Seconds()/2*float64(c.Rate)/vectors)))
}
