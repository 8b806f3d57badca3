package config

import (
	"bytes"
	"errors"
	"unicode/utf8"

	"github.com/openimpi/impi/plugins/sdk/support/plainfile"
)

// The maximum sizes in bytes of a job file and of a key file. A job file of a thousand sites has a
// third of the former.
const (
	maxJobFile = 1 << 20
	maxKeyFile = 4 << 10
)

var errNoText = errors.New("it is no text")

// ReadText returns the text of a job file. What is no regular file is an error, as is one that is
// too big for a job file.
func ReadText(path string) ([]byte, error) { return readText(path, maxJobFile) }

func readText(path string, most int) ([]byte, error) {
	b, err := plainfile.Read(path, most)
	switch {
	case bytes.IndexByte(b, 0) >= 0 || err == nil && !utf8.Valid(b):
		return nil, errNoText
	case err != nil:
		return nil, err
	}
	return b, nil
}
