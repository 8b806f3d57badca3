package dynamic

import "time"

// SparePlan returns the plan, within limit, for a link from a spare site to a host of the job.
func SparePlan(candidates int, limit time.Duration) *DialPlan {
	return &DialPlan{candidates: candidates, pair: oneDialler{}, rules: rules{
		limit: limit, first: 50 * time.Millisecond, last: 2 * time.Second, hopeless: true,
		final: func(Verdict) bool { return false },
	}}
}
