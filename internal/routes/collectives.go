package routes

import (
	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/route"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/measured"
)

// CollectivesFeatures returns how the site is set to exchange messages in collective operations,
// and how far other sites are, as measured in earlier jobs. A file that cannot be read adds
// nothing; MeasuredProblem returns why.
func CollectivesFeatures(site config.Site) []string {
	known, _ := readMeasured(site)
	rtt, rate := known.Worst(site.Name)
	return route.CollectivesFeatures(route.CollectivesChoice(site.Protocol.Collectives), rtt, rate)
}

// MeasuredProblem returns why the file of round trips cannot be read. A missing file is no problem.
func MeasuredProblem(site config.Site) error {
	_, err := readMeasured(site)
	return err
}

func readMeasured(site config.Site) (measured.File, error) {
	if site.Protocol.Measured == "" {
		return measured.File{}, nil
	}
	return measured.Read(site.Protocol.Measured)
}

// Collectives returns how the job's sites exchange messages in collective operations. All nodes get
// the same.
func Collectives(rt *Table) route.Collectives {
	var cards []*dynamic.BusinessCard
	for _, c := range rt.World.Clients {
		cards = append(cards, rt.Cards.At(c.FirstProc))
	}
	return route.PlanCollectives(cards, func(i int) string { return rt.ClientName(wire.ClientRank(i)) })
}
