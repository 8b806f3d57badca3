package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// Prefix begins the file name of a plugin; the transport's name follows.
const Prefix = "impi-transport-"

// Find returns the path of the plugin for a transport in a plugin directory. name is the
// transport's name or, if the config gives one, the file's. Find applies the same rules as
// Start: directory and file belong to root or to us, nobody else can write to them, and no
// symbolic link leads out.
func Find(dir, name string) (string, error) {
	file := name
	if !strings.HasPrefix(file, Prefix) {
		file = Prefix + name
	}
	if filepath.Base(file) != file {
		return "", &Error{Plugin: name, Kind: ErrNotFound, Problem: "the name has a slash in it",
			Remedy: "give the name of a file in plugin_dir, without a path"}
	}
	path, err := filepath.Abs(filepath.Join(dir, file))
	if err != nil {
		return "", fmt.Errorf("plugin_dir %s: %w", dir, err)
	}
	f, err := openSafely(name, path)
	if err != nil {
		return "", err
	}
	return path, f.Close()
}

// List returns the names of the transports that have a plugin in dir, sorted. It returns
// none if the directory does not exist.
func List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("plugin_dir: %w", err)
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutPrefix(e.Name(), Prefix); ok && validName().MatchString(name) {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names, nil
}

// openSafely opens a plugin's file. The checks apply to the open file, so nobody can
// replace it after them.
func openSafely(name, path string) (*os.File, error) {
	dir := filepath.Dir(path)
	unsafe := func(problem, remedy string) error {
		return &Error{Plugin: name, Path: path, Kind: ErrUnsafe, Problem: problem, Remedy: remedy}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, notFound(name, path, err)
	}
	defer root.Close()
	info, err := root.Stat(".")
	if err != nil {
		return nil, notFound(name, path, err)
	}
	if problem := writableByOthers(info); problem != "" {
		return nil, unsafe("directory "+dir+" "+problem, "make it yours or root's and chmod go-w "+dir)
	}
	f, err := root.Open(filepath.Base(path))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, notFound(name, path, err)
	} else if err != nil {
		return nil, unsafe(fmt.Sprintf("cannot be opened inside %s: %v", dir, err),
			"a symbolic link must stay inside the directory: copy the file into it")
	}
	if info, err = f.Stat(); err != nil {
		f.Close()
		return nil, notFound(name, path, err)
	}
	switch problem := writableByOthers(info); {
	case !info.Mode().IsRegular():
		err = unsafe("is not a regular file", "give the path of the plugin's binary")
	case problem != "":
		err = unsafe(problem, "make it yours or root's and chmod go-w "+path)
	case info.Mode()&0o111 == 0:
		err = unsafe("is not executable", "chmod +x "+path)
	default:
		return f, nil
	}
	f.Close()
	return nil, err
}

func notFound(name, path string, err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	return &Error{Plugin: name, Path: path, Kind: ErrNotFound, Problem: err.Error(), Cause: err,
		Remedy: "install it as " + Prefix + "NAME in plugin_dir, or correct plugin = in the transport block"}
}

// Examine checks the file of a plugin: whether it may be run, and has the checksum that a job file
// trusts, if that says one. It returns where the file is and its checksum as far as they are known.
func Examine(path, trusted string) (at, digest string, err error) {
	dir, name := filepath.Split(path)
	if at, err = Find(dir, name); err != nil {
		return path, "", err
	}
	digest, err = Digest(at)
	if err == nil && trusted != "" && !strings.EqualFold(trusted, digest) {
		err = fmt.Errorf("the file has sha256 %s, the job file trusts %s", digest, trusted)
	}
	return at, digest, err
}
