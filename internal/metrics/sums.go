package metrics

import (
	"maps"
	"slices"
	"strings"
)

type sums map[string]float64

func newSums() sums { return make(sums) }

// add adds v to the sum of the labels, which have no zero byte.
func (s sums) add(v float64, labels ...string) { s[strings.Join(labels, "\x00")] += v }

func (s sums) all(add func(float64, ...string)) {
	for _, k := range slices.Sorted(maps.Keys(s)) {
		add(s[k], strings.Split(k, "\x00")...)
	}
}
