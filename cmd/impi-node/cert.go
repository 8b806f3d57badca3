package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/plugins/sdk/support/pki"
	"github.com/openimpi/impi/plugins/sdk/support/plainfile"
)

//go:embed help/cert.txt
var certHelp string

type certOptions struct {
	dir, sites, file string
	days             int
	renew            bool
	args             []string
}

func certCommand() *cmdline.Command {
	const sites = "`SITE`"
	o := &certOptions{}
	add := func(name, kind string, does func(*certOptions, io.Writer) error) *cmdline.Command {
		c := &cmdline.Command{Name: name, Args: kind, Flags: cmdline.NewFlags()}
		c.Run = func(args []string, out, _ io.Writer) (int, error) {
			o.args = args
			if err := does(o, out); err != nil {
				return statusUsage, err
			}
			return statusOK, nil
		}
		return c
	}
	start, issue, display := add("init", sites, certInit), add("issue", sites, certIssue), add("show", cmdline.File, certShow)
	for _, c := range []*cmdline.Command{start, issue} {
		c.Flags.StringVar(&o.dir, "dir", "certs", cmdline.Dir)
		c.Flags.IntVar(&o.days, "days", 365, "")
		c.Check = func([]string) error {
			if o.days < 1 || o.days > 36500 {
				return fmt.Errorf("-days %d: it can be 1 to 36500", o.days)
			}
			return nil
		}
	}
	start.Flags.StringVar(&o.sites, "sites", "", "")
	start.Flags.StringVar(&o.file, "config", "", cmdline.File)
	issue.Flags.BoolVar(&o.renew, "renew", false, "")
	return &cmdline.Command{Name: "cert", Help: certHelp, Commands: []*cmdline.Command{start, issue, display}}
}

func (o *certOptions) siteNames() (names []string, err error) {
	switch {
	case len(o.args) > 0:
		return nil, fmt.Errorf("%q: give the sites with -sites %s", o.args[0], strings.Join(o.args, ","))
	case (o.sites == "") == (o.file == ""):
		return nil, errors.New("say which sites: either -sites alpha,beta or -config job.hcl")
	case o.sites != "":
		names = strings.Split(o.sites, ",")
	default:
		// The file may name the certificates that are about to be made, so its other faults
		// are left to validate.
		if names, err = config.SiteNames(o.file); err != nil {
			return nil, err
		}
	}
	return names, checkNames(names)
}

func checkNames(names []string) error {
	seen := map[string]bool{"ca": true}
	for _, n := range names {
		switch {
		case !pki.ValidName(n):
			return fmt.Errorf("%q: a site's name has letters, digits, '-', '_' and '.' in a certificate", n)
		case n == "ca":
			return errors.New(`a site cannot be called "ca": its files would be those of the CA`)
		case seen[n]:
			return fmt.Errorf("site %q is named twice", n)
		}
		seen[n] = true
	}
	return nil
}

func certInit(o *certOptions, out io.Writer) error {
	names, err := o.siteNames()
	if err != nil {
		return err
	}
	for _, n := range append([]string{"ca"}, names...) {
		if err := o.vacant(n); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return err
	}
	ca, err := pki.NewAuthority("impi job CA", time.Now(), o.validity())
	if err != nil {
		return err
	}
	if err := o.write("ca", ca.Pair()); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s, %s: the job's CA. Keep the key where no job runs.\n", o.path("ca", ".pem"), o.path("ca", ".key"))
	return o.issue(ca, names, out)
}

// maxPEM bounds a file with certificates or a key.
const maxPEM = 1 << 20

func certIssue(o *certOptions, out io.Writer) error {
	if len(o.args) == 0 {
		return errors.New("name the sites, as in: impi-node cert issue gamma")
	}
	if err := checkNames(o.args); err != nil {
		return err
	}
	certPEM, err := plainfile.Read(o.path("ca", ".pem"), maxPEM)
	if err != nil {
		return fmt.Errorf("%w; impi-node cert init makes a CA", err)
	}
	keyPEM, err := plainfile.Read(o.path("ca", ".key"), maxPEM)
	if err != nil {
		return fmt.Errorf("%w; certificates are made where the CA's key is", err)
	}
	ca, err := pki.Load(pki.Pair{Cert: certPEM, Key: keyPEM})
	if err != nil {
		return err
	}
	if now := time.Now(); now.After(ca.Cert().NotAfter) {
		return fmt.Errorf("the CA in %s expired on %s: make another one with impi-node cert init, for all sites", o.path("ca", ".pem"), date(ca.Cert().NotAfter))
	}
	for _, n := range o.args {
		if err := o.vacant(n); err != nil && !o.renew {
			return fmt.Errorf("%w; to replace it: impi-node cert issue -renew %s", err, n)
		}
	}
	return o.issue(ca, o.args, out)
}

func (o *certOptions) issue(ca *pki.Authority, names []string, out io.Writer) error {
	for _, n := range names {
		pair, err := ca.Issue(n, time.Now(), o.validity())
		if err != nil {
			return err
		}
		if err := o.write(n, pair); err != nil {
			return err
		}
		made, err := pki.ParseCert(pair.Cert)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s, %s: site %s, valid until %s\n", o.path(n, ".pem"), o.path(n, ".key"), n, date(made.NotAfter))
	}
	fmt.Fprint(out, "\nIn the job file, inside each site's block:\n")
	for _, n := range names {
		fmt.Fprintf(out, "\n  # site %q\n  transport \"quic\" {\n    config {\n      cert = %q\n      key  = %q\n      ca   = %q\n    }\n  }\n",
			n, o.path(n, ".pem"), o.path(n, ".key"), o.path("ca", ".pem"))
	}
	fmt.Fprint(out, "\nand once: route \"*\" { prefer = [\"shm\", \"unix\", \"quic\"] }\n"+
		"For TLS over TCP write \"tcp\" for \"quic\", and tls = true beside the three files.\n")
	return nil
}

func (o *certOptions) validity() time.Duration { return time.Duration(o.days) * 24 * time.Hour }

func (o *certOptions) path(name, suffix string) string { return filepath.Join(o.dir, name+suffix) }

// vacant returns an error for a file that exists.
func (o *certOptions) vacant(name string) error {
	for _, suffix := range []string{".pem", ".key"} {
		if _, err := os.Lstat(o.path(name, suffix)); err == nil {
			return fmt.Errorf("%s exists and is not replaced", o.path(name, suffix))
		}
	}
	return nil
}

// write writes certificate and key, each atomically: a reader gets the old file or the new
// one.
func (o *certOptions) write(name string, p pki.Pair) error {
	for _, f := range []struct {
		suffix  string
		content []byte
		mode    os.FileMode
	}{{".key", p.Key, 0o600}, {".pem", p.Cert, 0o644}} {
		if err := o.writeFile(o.path(name, f.suffix), f.content, f.mode); err != nil {
			return err
		}
	}
	return nil
}

func (o *certOptions) writeFile(path string, content []byte, mode os.FileMode) error {
	next := path + ".new"
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if o.renew && err == nil {
		err = likeOld(f, path)
	}
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil && o.renew {
		return os.Rename(next, path)
	}
	if err == nil {
		err = os.Link(next, path) // fails if another process has made the file first
	}
	return errors.Join(err, os.Remove(next))
}

// likeOld gives a file the owner, the group and the mode of the one that it will replace, if there
// is one: a service that may read the old one may read the new one.
func likeOld(f *os.File, path string) error {
	old, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if st, ok := old.Sys().(*syscall.Stat_t); ok {
		if err := f.Chown(int(st.Uid), int(st.Gid)); err != nil {
			return fmt.Errorf("the new file cannot have owner and group of the old one: %w: do this as the owner, or as root", err)
		}
	}
	return f.Chmod(old.Mode().Perm())
}

func certShow(o *certOptions, out io.Writer) error {
	if len(o.args) == 0 {
		return errors.New("name the files, as in: impi-node cert show certs/alpha.pem")
	}
	for _, path := range o.args {
		b, err := plainfile.Read(path, maxPEM)
		if err != nil {
			return err
		}
		c, err := pki.ParseCert(b)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		kind := "site " + strings.Join(c.DNSNames, ", ")
		if c.IsCA {
			kind = "CA " + c.Subject.CommonName
		}
		state := ""
		if time.Now().After(c.NotAfter) {
			state = ", EXPIRED"
		}
		fmt.Fprintf(out, "%s: %s, signed by %s, valid from %s until %s%s\n", path, kind, c.Issuer.CommonName, date(c.NotBefore), date(c.NotAfter), state)
	}
	return nil
}

func date(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 MST") }
