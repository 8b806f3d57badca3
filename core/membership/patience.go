package membership

import "time"

// earlier is how long before the server misses the site the head reports which hosts are missing.
const earlier = 2 * time.Second

// Patience returns how long the head waits for the other hosts of a site that the server waits for
// as long as start: a bit less, so that the hosts that are missing are named.
func Patience(start time.Duration) time.Duration { return start - min(start/8, earlier) }

// SignsOfLife returns how often the hosts of a site give a sign of life, and after which silence
// one of them is lost: early enough that all have ended when limit, the job's limit for that, is
// over, and after three signs that may be late.
func SignsOfLife(limit time.Duration) (beat, silence time.Duration) { return limit / 5, limit * 4 / 5 }
