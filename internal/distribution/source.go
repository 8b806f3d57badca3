package distribution

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/openimpi/impi/config"
)

// source is where plugins come from. Errors say what and where.
type source interface {
	index(context.Context) (*Index, error)
	open(ctx context.Context, file string) (io.ReadCloser, error)
	Close() error
}

// newSource returns the source of a plugin block; relative folders start from base.
func newSource(text, base string) (source, error) {
	sort, at := config.PluginSource(text)
	if sort == config.SourceWeb {
		return newWeb(at)
	}
	if !filepath.IsAbs(at) {
		at = filepath.Join(base, at)
	}
	f, err := openFolder(at)
	if err != nil {
		return nil, err
	}
	if sort == config.SourceFolder {
		return f, nil
	}
	l := &layout{folder: f}
	if err := l.check(); err != nil {
		f.Close()
		return nil, fmt.Errorf("the source %s is not an OCI layout: %w", at, err)
	}
	return l, nil
}

// folder is a mirror in the file system, opened so that no file can lead out of it.
type folder struct {
	root *os.Root
	path string
}

func openFolder(path string) (*folder, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("the source %s: %w", path, reason(err))
	}
	return &folder{root, path}, nil
}

func (f *folder) Close() error { return f.root.Close() }

func (f *folder) index(context.Context) (*Index, error) {
	text, err := f.read(IndexName, maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s has no %s; impi-node plugins publish %[1]s makes it", f.path, IndexName)
	} else if err != nil {
		return nil, err
	}
	x, err := ParseIndex(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(f.path, IndexName), err)
	}
	return x, nil
}

func (f *folder) open(_ context.Context, file string) (io.ReadCloser, error) {
	in, err := f.root.OpenFile(filepath.FromSlash(file), os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not block
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(f.path, file), reason(err))
	}
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() {
		in.Close()
		return nil, fmt.Errorf("%s: it is not a regular file", filepath.Join(f.path, file))
	}
	return in, nil
}

func (f *folder) read(file string, most int64) ([]byte, error) {
	in, err := f.open(context.Background(), file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return readAll(in, filepath.Join(f.path, file), most)
}

func readAll(in io.Reader, name string, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("%s: it has more than %d bytes, which is too many", name, most)
	}
	return text, nil
}

// reason is err without the path and the call, which the message has already.
func reason(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}
