package conformance

import "testing"

// TestAssignment: a setting as it is written into a job file. Numbers come as JSON has them.
func TestAssignment(t *testing.T) {
	for want, s := range map[string]Setting{
		"window = 1048576":             {Name: "window", Type: "number", Default: float64(1 << 20)},
		"rate = 0.5":                   {Name: "rate", Type: "number", Default: 0.5},
		`provider = "tcp"`:             {Name: "provider", Type: "string", Default: "tcp"},
		`env = ["A=b", "C"]`:           {Name: "env", Type: "list", Default: []string{"A=b", "C"}},
		"key = ... (string, required)": {Name: "key", Type: "string", Required: true},
		"# name = ... (string)":        {Name: "name", Type: "string"},
	} {
		if got := assignment(s); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
