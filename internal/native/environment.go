package native

import (
	"encoding/json"
	"fmt"
	"os"
)

// Variable is the environment variable in which impi-node passes an Environment to the procs that a
// site's own launcher starts: where their nodes are.
const Variable = "IMPI_NATIVE"

const maxEnvironment = 4 << 10

// Environment is what a proc of a native site needs before it can connect to its node.
type Environment struct {
	Socket string `json:"socket"` // abstract Unix socket of the node of the proc's machine
	Shim   string `json:"shim"`   // the file that Build has made
	Site   string `json:"site"`   // for messages
	Procs  int    `json:"procs"`  // of the site: the number that the launcher has to start
}

// Encode returns the value of Variable.
func (p Environment) Encode() (string, error) {
	b, err := json.Marshal(p)
	return string(b), err
}

// ReadEnvironment reads Variable. found is false if the variable is not set, as in procs that a
// node has started itself.
func ReadEnvironment(getenv func(string) string) (p Environment, found bool, err error) {
	text := getenv(Variable)
	if text == "" {
		return p, false, nil
	}
	if len(text) > maxEnvironment {
		return p, true, fmt.Errorf("%s has %d bytes, more than %d", Variable, len(text), maxEnvironment)
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return p, true, fmt.Errorf("%s=%.80q cannot be read: %w", Variable, text, err)
	}
	if p.Socket == "" || p.Shim == "" || p.Procs < 1 {
		return p, true, fmt.Errorf("%s=%.80q lacks a socket, a shim or the number of procs", Variable, text)
	}
	return p, true, nil
}

// UnsetEnvironment removes Variable, so that programs that the proc starts do not act as procs.
func UnsetEnvironment() { _ = os.Unsetenv(Variable) } // fails for no valid name
