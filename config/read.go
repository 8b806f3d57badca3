package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"
)

// The most that is read of a job file, and of a key's. A file of a thousand sites has a
// third of the former.
const (
	maxJobFile = 1 << 20
	maxKeyFile = 4 << 10
)

// errNoText is why a file cannot be what it is taken for.
var errNoText = errors.New("it is no text")

// readText reads a file that people write, which has most bytes at most.
func readText(path string, most int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	switch {
	case err != nil:
		return nil, err
	case bytes.IndexByte(b, 0) >= 0 || len(b) <= most && !utf8.Valid(b):
		return nil, errNoText
	case len(b) > most:
		return nil, fmt.Errorf("it has more than %d KiB", most>>10)
	}
	return b, nil
}
