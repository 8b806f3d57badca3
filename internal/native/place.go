package native

import (
	"encoding/json"
	"fmt"
	"os"
)

// Variable is the environment variable by which impi-node tells the procs that a site's own launcher
// starts where their nodes are, as a Place.
const Variable = "IMPI_NATIVE"

const maxPlace = 4 << 10

// Place is what a proc of a native site has to know before it can speak to its node.
type Place struct {
	Socket string `json:"socket"` // abstract Unix socket of the node of the proc's machine
	Shim   string `json:"shim"`   // the file that Build has made
	Site   string `json:"site"`   // for messages
	Procs  int    `json:"procs"`  // of the site: that many the launcher has to start
}

// Encode is the value of Variable.
func (p Place) Encode() (string, error) {
	b, err := json.Marshal(p)
	return string(b), err
}

// FindPlace reads Variable. It reports false where the variable is not set, as in procs that a node has
// started itself.
func FindPlace(getenv func(string) string) (p Place, found bool, err error) {
	text := getenv(Variable)
	if text == "" {
		return p, false, nil
	}
	if len(text) > maxPlace {
		return p, true, fmt.Errorf("%s has %d bytes, more than %d", Variable, len(text), maxPlace)
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return p, true, fmt.Errorf("%s=%.80q cannot be read: %w", Variable, text, err)
	}
	if p.Socket == "" || p.Shim == "" || p.Procs < 1 {
		return p, true, fmt.Errorf("%s=%.80q lacks a socket, a shim or the number of procs", Variable, text)
	}
	return p, true, nil
}

// Forget removes Variable, so that programs that the proc starts do not take themselves for procs.
func Forget() { _ = os.Unsetenv(Variable) } // fails for no name
