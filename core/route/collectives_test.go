package route

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
)

func TestPlanCollectives(t *testing.T) {
	card := func(choice CollectivesChoice, rtt time.Duration, rate int64) *dynamic.BusinessCard {
		return &dynamic.BusinessCard{Features: append([]string{"resume"}, CollectivesFeatures(choice, rtt, rate)...)}
	}
	auto := card(CollectivesAuto, 0, 0)
	for name, c := range map[string]struct {
		cards        []*dynamic.BusinessCard
		direct, long int
	}{
		"nothing was measured":  {[]*dynamic.BusinessCard{auto, card("", 0, 0), auto}, 16, 1 << 20},
		"an older site":         {[]*dynamic.BusinessCard{auto, {Features: []string{"resume"}}}, 0, 0},
		"a site without a card": {[]*dynamic.BusinessCard{auto, nil}, 0, 0},
		"pinned to trees":       {[]*dynamic.BusinessCard{card(CollectivesDirect, 0, 0), card(CollectivesTree, 0, 0)}, 0, 1 << 20},
		"pinned to all at once": {[]*dynamic.BusinessCard{auto, card(CollectivesDirect, 0, 0)}, wire.MaxClients, 1 << 20},
		"near":                  {[]*dynamic.BusinessCard{auto, card(CollectivesAuto, 50*time.Microsecond, 0)}, 5, 1 << 20},
		"nearer than 1 us":      {[]*dynamic.BusinessCard{auto, card(CollectivesAuto, 200*time.Nanosecond, 0)}, 2, 1 << 20},
		"very near":             {[]*dynamic.BusinessCard{auto, card(CollectivesAuto, time.Microsecond, 1e9)}, 2, 1 << 20},
		// Of eight sites 5.25 vectors more leave a site, which 62500 kB/s x 50 ms have to pay for.
		"far":         {slices.Repeat([]*dynamic.BusinessCard{card(CollectivesAuto, 100*time.Millisecond, 62_500_000)}, 8), wire.MaxClients, 595238},
		"far, a pair": {slices.Repeat([]*dynamic.BusinessCard{card(CollectivesAuto, 100*time.Millisecond, 62_500_000)}, 2), wire.MaxClients, 1 << 20},
		"the worst counts": {[]*dynamic.BusinessCard{card(CollectivesAuto, time.Millisecond, 1e12), card(CollectivesAuto, 100*time.Millisecond, 62_500_000), auto, auto,
			auto, auto, auto, auto}, wire.MaxClients, 595238},
		"a slow line":    {slices.Repeat([]*dynamic.BusinessCard{card(CollectivesAuto, time.Millisecond, 1_000_000)}, 3), wire.MaxClients, 64 << 10},
		"not a number":   {[]*dynamic.BusinessCard{auto, {Features: []string{"collectives-auto", "collectives-rtt-us-x", "collectives-rate-kb-99999999999999999999"}}}, 16, 1 << 20},
		"without limits": {slices.Repeat([]*dynamic.BusinessCard{card(CollectivesAuto, 100*time.Hour, 1e15)}, 3), wire.MaxClients, 1 << 30},
	} {
		got := PlanCollectives(c.cards, func(i int) string { return fmt.Sprint("site ", i) })
		if got.Direct != c.direct || got.DirectLong != c.long || got.Why == "" {
			t.Errorf("%s: %+v, want %d and %d", name, got, c.direct, c.long)
		}
	}
}

// TestCollectivesName: whoever asks why is told the site, as its users call it.
func TestCollectivesName(t *testing.T) {
	auto, tree, direct := &dynamic.BusinessCard{Features: CollectivesFeatures("", 0, 0)}, &dynamic.BusinessCard{Features: CollectivesFeatures(CollectivesTree, 0, 0)}, &dynamic.BusinessCard{Features: CollectivesFeatures(CollectivesDirect, 0, 0)}
	for want, cards := range map[string][]*dynamic.BusinessCard{
		"the file of beta says so": {auto, tree}, "the file of alpha says so": {direct, auto}, "beta does not say that it knows another way": {auto, {}},
	} {
		if got := PlanCollectives(cards, func(i int) string { return []string{"alpha", "beta"}[i] }); got.Why != want {
			t.Errorf("%q, want %q", got.Why, want)
		}
	}
}
