package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"unicode/utf8"
)

// The maximum sizes in bytes of a job file and of a key file. A job file of a thousand sites has a
// third of the former.
const (
	maxJobFile = 1 << 20
	maxKeyFile = 4 << 10
)

var errNoText = errors.New("it is no text")

var errTooBig = errors.New("it is too big")

func readText(path string, most int) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // does not block on a pipe without a writer
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if about, err := f.Stat(); err == nil && about.Mode()&fs.ModeNamedPipe != 0 {
		return nil, errNoText
	}
	b, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	switch {
	case err != nil:
		return nil, err
	case bytes.IndexByte(b, 0) >= 0 || len(b) <= most && !utf8.Valid(b):
		return nil, errNoText
	case len(b) > most:
		return nil, fmt.Errorf("%w: it has more than %d KiB", errTooBig, most>>10)
	}
	return b, nil
}
