package quantity

import "testing"

func TestText(t *testing.T) {
	for _, c := range []struct {
		x          float64
		unit, want string
	}{
		{0, "B", "0 B"}, {0, "", "0"}, {7, "", "7"}, {999, "B", "999 B"}, {999.4, "B/s", "999 B/s"}, {999.6, "B", "1.00 kB"}, {1000, "", "1.00 k"},
		{1234, "B", "1.23 kB"}, {9994, "B", "9.99 kB"}, {9996, "B", "10.0 kB"}, {56600, "B", "56.6 kB"}, {99960, "B", "100 kB"}, {123456, "", "123 k"},
		{999499, "B", "999 kB"}, {999500, "B", "1.00 MB"}, {6.3e9, "B/s", "6.30 GB/s"}, {5e12, "B", "5.00 TB"}, {2e18, "B", "2000 PB"},
	} {
		if got := Text(c.x, c.unit); got != c.want {
			t.Errorf("%v %q: %q, want %q", c.x, c.unit, got, c.want)
		}
	}
	if got := Bytes(1500); got != "1.50 kB" {
		t.Error(got)
	}
}
