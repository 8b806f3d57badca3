package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/openimpi/impi/plugins/sdk/support/keyfile"
)

// auth decides what authentication s offers: that of its own auth blocks, or of the job's,
// or a random key if only this machine takes part.
func (s *siteDraft) auth() {
	blocks := s.block.all("auth")
	if len(blocks) == 0 {
		blocks = s.job.all("auth")
	}
	if s.authOf(blocks, &s.Auth) {
		s.doubt = true
	}
	if len(blocks) > 0 {
		return
	}
	s.Auth.Random = true
	if !s.alone() {
		s.fault(s.Pos, "site "+quote(s.Name)+" has no auth: anybody who reaches the server could join",
			`add auth "key" { file = "job.key" }, or auth "none" {} if that is wanted`)
	}
}

// authOf reads auth blocks into a. It reports whether they have faults, so that a does not have all
// that was meant.
func (s *siteDraft) authOf(blocks []*block, a *Auth) (doubt bool) {
	for _, in := range blocks {
		switch in.label {
		case "none":
			a.None = true
			s.checkNone(in)
		case "key":
			a.Keyed = true
			before := len(s.list)
			a.Key = s.key(in)
			a.File, _ = get[string](in, "file")
			a.Variable, _ = get[string](in, "env")
			doubt = doubt || len(s.list) > before || !in.has("file") && !in.has("env")
		default:
			s.fault(in.pos, "there is no authentication "+quote(in.label), meant(in.label, []string{"key", "none"}))
			doubt = true
		}
	}
	return doubt
}

func (s *siteDraft) checkNone(in *block) {
	for name := range in.values {
		s.fault(in.at(name), `auth "none" takes nothing`, `write auth "none" {}`)
	}
}

// alone reports whether the whole job is in this file and on the loopback network, or one site
// whose head starts the other hosts, and no site has an auth block, so that its launcher can
// draw a key.
func (b *builder) alone() bool {
	if !b.result.Complete || b.embedding() == nil || len(b.job.all("auth")) > 0 {
		return false
	}
	for _, s := range b.sites {
		if s.Foreign || len(s.block.all("auth")) > 0 || !s.Server.Address.Addr().IsLoopback() {
			return false
		}
		if len(b.sites) == 1 && s.Launch != nil {
			continue
		}
		if slices.ContainsFunc(s.Hosts, func(h Host) bool { return !h.Address.IsLoopback() }) {
			return false
		}
	}
	return true
}

func (s *siteDraft) key(in *block) uint64 {
	file, inFile := get[string](in, "file")
	name, inEnv := get[string](in, "env")
	switch {
	case in.has("file") && in.has("env"):
		s.fault(in.at("env"), "the key is in a file and in the environment", "keep file or env")
	case s.opt.KeysKnown:
	case inFile && s.here():
		return s.keyFile(in.at("file"), s.shown(file))
	case inEnv && s.here():
		return s.keyEnv(in.at("env"), name)
	case !in.has("file") && !in.has("env"):
		s.fault(in.pos, `auth "key" does not say where the key is`, `add file = "job.key" or env = "IMPI_AUTH_KEY"`)
	}
	return 0
}

func (s *siteDraft) keyFile(pos Pos, path string) uint64 {
	text, err := readText(path, maxKeyFile)
	if err != nil {
		s.fault(pos, "cannot read the key: "+reason(err), "copy it from where the job has one, or make it with: "+makeKey(path))
		return 0
	}
	if info, err := os.Stat(path); err == nil && !keyfile.Private(info) {
		s.warn(pos, fmt.Sprintf("others can read the key: the file has mode %04o", info.Mode().Perm()), "chmod 600 "+path)
	}
	key, err := ParseKey(string(text))
	if err != nil {
		s.fault(pos, "the file holds no key: "+err.Error(), "make the file with: "+makeKey(path))
	}
	return key
}

func makeKey(path string) string {
	return "(umask 077; od -An -N8 -tu8 /dev/urandom > " + path + ")"
}

func (s *siteDraft) keyEnv(pos Pos, name string) uint64 {
	v, set := s.env[name]
	if !set {
		s.fault(pos, "the environment variable "+name+" is not set", "export "+name+"=... with the job's key before the start")
		return 0
	}
	key, err := ParseKey(v.AsString())
	if err != nil {
		s.fault(pos, name+" holds no key: "+err.Error(), "export a decimal number or 0x and hex digits, of at most 64 bits")
	}
	return key
}

// ParseKey parses a job's key: a number of at most 64 bits, decimal or hexadecimal after
// 0x, with optional white space around it (IMPI ch.2, Authentication: the key is a Uint8).
// The error does not quote the text, which is a secret.
func ParseKey(text string) (uint64, error) {
	text = strings.TrimSpace(text)
	digits, base := text, 10
	if hex, ok := strings.CutPrefix(strings.ToLower(text), "0x"); ok {
		digits, base = hex, 16
	}
	key, err := strconv.ParseUint(digits, base, 64)
	switch {
	case text == "":
		return 0, errors.New("it is empty")
	case errors.Is(err, strconv.ErrRange):
		return 0, errors.New("the number has more than 64 bits")
	case err != nil:
		return 0, errors.New("it is neither a decimal number nor 0x and hex digits")
	}
	return key, nil
}
