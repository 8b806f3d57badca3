package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/internal/peers"
)

// root is a release of Debian in a folder. Only one process at a time has it.
type root struct {
	dir  string
	lock *os.File
}

// stamp is the file below a root's /etc that says that debootstrap has ended well.
const stamp = "etc/impi-root"

// open returns the root of a release, and makes it if it is not there.
func open(ctx context.Context, release string) (*root, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("only root may mount folders and enter a release: run it with sudo")
	}
	all, err := peers.Dir()
	if err != nil {
		return nil, err
	}
	r := &root{dir: filepath.Join(all, "debian-"+release)}
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return nil, err
	}
	if r.lock, err = os.OpenFile(r.dir+".lock", os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o644); err != nil {
		return nil, err
	}
	if err := unix.Flock(int(r.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		r.close()
		return nil, fmt.Errorf("another process uses %s: wait for it: %w", r.dir, err)
	}
	if _, err := os.Stat(filepath.Join(r.dir, stamp)); err == nil {
		return r, nil
	}
	if err := r.make(ctx, release); err != nil {
		r.close()
		return nil, fmt.Errorf("%s of Debian cannot be had: %w", release, err)
	}
	return r, nil
}

func (r *root) close() { _ = r.lock.Close() }

// make fills the folder, whatever an interrupted call has left there.
func (r *root) make(ctx context.Context, release string) error {
	if _, err := exec.LookPath("debootstrap"); err != nil {
		return errors.New("there is no debootstrap: apt-get install debootstrap")
	}
	mirror, err := peers.Mirror(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "debian: making %s in %s\n", release, r.dir)
	if err := os.RemoveAll(r.dir); err != nil {
		return err
	}
	if err := say(exec.CommandContext(ctx, "debootstrap", "--variant=minbase", release, r.dir, mirror)); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.dir, stamp), []byte(release+"\n"), 0o644)
}

// install adds those packages that are not there.
func (r *root) install(ctx context.Context, names []string) error {
	if r.say(ctx, append([]string{"dpkg-query", "-W", "-f", "${binary:Package}\n"}, names...)) == nil {
		return nil
	}
	fmt.Fprintf(os.Stderr, "debian: installing %s\n", strings.Join(names, " "))
	for _, command := range [][]string{
		{"apt-get", "-q", "update"},
		append([]string{"env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qy", "--no-install-recommends", "install"}, names...),
	} {
		if err := r.say(ctx, command); err != nil {
			return err
		}
	}
	return nil
}

// say runs a command in the root, whose output is in the error if it fails.
func (r *root) say(ctx context.Context, command []string) error {
	c, err := r.command(ctx, command)
	if err != nil {
		return err
	}
	return say(c)
}

func say(c *exec.Cmd) error {
	out, err := c.CombinedOutput()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("%s: %w: %s", strings.Join(c.Args, " "), err, strings.Join(lines[max(0, len(lines)-5):], "\n"))
	}
	return nil
}

func (r *root) run(ctx context.Context, command []string) error {
	c, err := r.command(ctx, command)
	if err != nil {
		return err
	}
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	return c.Run()
}

// inside is the first argument of the process that enters a root.
const inside = "-inside"

// command makes a process in a mount namespace of its own, which enters the root and becomes
// command.
func (r *root) command(ctx context.Context, command []string) (*exec.Cmd, error) {
	shared, err := goFolders(ctx)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := slices.Concat([]string{inside, r.dir, strings.Join(shared, ":")}, command)
	c := exec.CommandContext(ctx, self, args...)
	c.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	return c, nil
}

// goFolders returns the checkout, Go itself, and Go's caches.
func goFolders(ctx context.Context) ([]string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD", "GOROOT", "GOMODCACHE", "GOCACHE").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	if len(lines) != 4 || !filepath.IsAbs(lines[0]) || lines[0] == os.DevNull {
		return nil, errors.New("this is no checkout of impi: run it in one")
	}
	return append([]string{filepath.Dir(lines[0])}, lines[1:]...), nil
}

// enter mounts what the command needs below the root, makes it this process's root, and becomes the
// command. It returns only if something fails.
func enter(args []string) error {
	dir, shared, command := args[0], strings.Split(args[1], ":"), args[2:]
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts private: %w", err)
	}
	for _, from := range append(shared, "/proc", "/dev", "/sys") {
		to := filepath.Join(dir, from)
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("mount %s below %s: %w", from, dir, err)
		}
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	if b, err := os.ReadFile("/etc/resolv.conf"); err == nil { // where there is one, apt needs it
		if err := os.WriteFile(filepath.Join(dir, "etc/resolv.conf"), b, 0o644); err != nil {
			return err
		}
	}
	if err := errors.Join(unix.Chroot(dir), unix.Chdir(here)); err != nil {
		return fmt.Errorf("enter %s: %w", dir, err)
	}
	path := filepath.Join(shared[1], "bin") + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	if err := os.Setenv("PATH", path); err != nil {
		return err
	}
	program, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	return unix.Exec(program, command, os.Environ())
}
