package host

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/support/plainfile"
)

// Digest returns the SHA-256 of a file in hex, as the setting sha256 in the config needs
// it.
func Digest(path string) (string, error) {
	f, err := plainfile.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return digest(f)
}

func digest(f *os.File) (string, error) {
	h := sha256.New()
	// Not Read: the offset is shared with the process that gets the descriptor.
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, 1<<62)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func parseDigest(s string) ([]byte, error) {
	b, err := hex.DecodeString(strings.TrimSpace(s))
	if err != nil || len(b) != sha256.Size {
		return nil, fmt.Errorf("sha256 %q: give %d hexadecimal digits, as sha256sum prints them", s, 2*sha256.Size)
	}
	return b, nil
}

// writableByOthers returns what is wrong with a file's owner or mode, or "".
func writableByOthers(info fs.FileInfo) string {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return fmt.Sprintf("belongs to user %d", st.Uid)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Sprintf("is writable by group or others (mode %04o)", info.Mode().Perm())
	}
	return ""
}

// executable is a verified binary. The open file that was hashed is executed, so a later
// change of the path has no effect.
type executable struct {
	file   *os.File
	path   string // for messages, and argv[0]
	digest string // empty for a built-in plugin that is not pinned
	script bool   // begins with #!
}

// verify opens the file that cfg names, checks owner and mode, and compares the checksum.
func verify(cfg *Config) (*executable, error) {
	x := &executable{path: cfg.Path}
	var err error
	if cfg.Builtin {
		// Not by its path, which may name another file by now.
		x.file, err = os.Open("/proc/self/exe")
		if x.path, _ = os.Executable(); x.path == "" {
			x.path = os.Args[0]
		}
		if err != nil {
			return nil, notFound(cfg.Name, x.path, err)
		}
	} else if x.file, err = openSafely(cfg.Name, cfg.Path); err != nil {
		return nil, err
	}
	if err := x.check(cfg); err != nil {
		x.file.Close()
		return nil, err
	}
	return x, nil
}

func (x *executable) check(cfg *Config) error {
	var head [2]byte
	n, _ := x.file.ReadAt(head[:], 0)
	x.script = bytes.Equal(head[:n], []byte("#!"))
	if cfg.Builtin && cfg.SHA256 == "" {
		return nil // this process runs that file; hashing it takes as long as starting it
	}
	var err error
	if x.digest, err = digest(x.file); err != nil {
		return notFound(cfg.Name, x.path, err)
	}
	if cfg.SHA256 == "" {
		return nil
	}
	want, err := parseDigest(cfg.SHA256)
	if err != nil {
		return err
	}
	have, _ := hex.DecodeString(x.digest)
	if subtle.ConstantTimeCompare(want, have) == 1 {
		return nil
	}
	if cfg.Install != "" {
		return &Error{Plugin: cfg.Name, Path: x.path, Kind: ErrChecksum,
			Problem: fmt.Sprintf("the file has sha256 %s, the lock file has %s: it was changed after it was installed", x.digest, cfg.SHA256),
			Remedy:  cfg.Install + " puts the right one in its place"}
	}
	return &Error{Plugin: cfg.Name, Path: x.path, Kind: ErrChecksum,
		Problem: fmt.Sprintf("the file has sha256 %s, the config wants %s", x.digest, cfg.SHA256),
		Remedy:  "if you trust the file, put its checksum into the transport block; otherwise reinstall the plugin"}
}

// scriptFD is the descriptor under which a script gets its own text. The interpreter has to
// open it, so it is not close-on-exec as a binary is.
const scriptFD = 4

// inherits are the files that the child inherits after the descriptor channel.
func (x *executable) inherits() []*os.File {
	if x.script {
		return []*os.File{x.file}
	}
	return nil
}

// clear is how many descriptor numbers above the highest inherited one must be free in a child,
// which renumbers its descriptors there: one for each, and one to report a failure.
const clear = 16

// execPath returns the path by which the child executes the file, given all that it inherits.
// release closes the file behind the path.
func (x *executable) execPath(inherited []*os.File) (path string, release func(), err error) {
	if x.script {
		return fmt.Sprintf("/proc/self/fd/%d", scriptFD), func() {}, nil
	}
	highest := 0
	for _, f := range inherited {
		highest = max(highest, int(f.Fd()))
	}
	// Not by our process number: a confined child may not look into this process.
	fd, err := unix.FcntlInt(x.file.Fd(), unix.F_DUPFD_CLOEXEC, highest+clear)
	if err != nil {
		return "", nil, fmt.Errorf("%s: dup: %w; raise the limit of open files (ulimit -n)", x.path, err)
	}
	return fmt.Sprintf("/proc/self/fd/%d", fd), func() { unix.Close(fd) }, nil
}
