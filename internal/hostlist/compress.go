package hostlist

import (
	"fmt"
	"strconv"
	"strings"
)

// Compress returns the list that Expand turns into these hosts, in this order. Consecutive hosts
// that differ only in their last number share brackets.
func Compress(hosts []string) string {
	var b strings.Builder
	for i := 0; i < len(hosts); {
		first := cut(hosts[i])
		n := i + 1
		for n < len(hosts) && first.like(cut(hosts[n])) {
			n++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		if n == i+1 {
			b.WriteString(hosts[i])
		} else {
			b.WriteString(first.before + "[" + ranges(hosts[i:n]) + "]" + first.behind)
		}
		i = n
	}
	return b.String()
}

// name is a host's name, split at its last number.
type name struct{ before, digits, behind string }

func cut(host string) name {
	end := strings.LastIndexAny(host, "0123456789") + 1
	start := end
	for start > 0 && end-start < maxDigits && host[start-1] >= '0' && host[start-1] <= '9' {
		start--
	}
	return name{host[:start], host[start:end], host[end:]}
}

func (n name) like(m name) bool {
	return n.digits != "" && m.digits != "" && n.before == m.before && n.behind == m.behind
}

// ranges returns what is between the brackets for hosts that are alike.
func ranges(hosts []string) string {
	var words []string
	for i := 0; i < len(hosts); {
		low := cut(hosts[i]).digits
		high := low
		n := i + 1
		for n < len(hosts) && cut(hosts[n]).digits == following(low, high) {
			high = cut(hosts[n]).digits
			n++
		}
		if low != high {
			low += "-" + high
		}
		words = append(words, low)
		i = n
	}
	return strings.Join(words, ",")
}

// following returns the number after digits, in a range that begins with low; "" if it would be too
// long.
func following(low, digits string) string {
	n, err := strconv.ParseInt(digits, 10, 64)
	next := fmt.Sprintf("%0*d", len(low), n+1)
	if err != nil || len(next) > maxDigits {
		return ""
	}
	return next
}
