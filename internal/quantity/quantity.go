// Package quantity writes sizes, rates and counts for people: all commands and pages write them
// alike.
package quantity

import "strconv"

// Text formats a number in a unit with three digits, in steps of a thousand: 1.20 MB, 45.0 kB/s.
// Without a unit it formats a count: 12.3 k. internal/ui/page/page.js does the same.
func Text(x float64, unit string) string {
	prefixes := []string{"", "k", "M", "G", "T", "P"}
	i := 0
	for x >= 999.5 && i < len(prefixes)-1 {
		x /= 1000
		i++
	}
	digits := 0
	switch {
	case i > 0 && x < 9.995:
		digits = 2
	case i > 0 && x < 99.95:
		digits = 1
	}
	text := strconv.FormatFloat(x, 'f', digits, 64)
	if unit = prefixes[i] + unit; unit != "" {
		text += " " + unit
	}
	return text
}

// Bytes is Text for a number of bytes.
func Bytes(n uint64) string { return Text(float64(n), "B") }
