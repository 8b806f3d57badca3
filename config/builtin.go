package config

import (
	"slices"
	"strings"
)

// Builtin is a transport that needs no plugin file, with its properties that are needed before its
// process runs. Nothing is known of a vendor's transport before that.
type Builtin struct {
	Name string

	// NeedsBlock says that it has settings without a default: a site has it only if the
	// file has a block for it.
	NeedsBlock bool

	// Machine says that its links stay on one machine, and Memory that they use memory that
	// both ends share.
	Machine, Memory bool

	// Encrypts says that its links are always encrypted. EncryptsBy is the bool setting
	// that turns encryption on; empty: there is none.
	Encrypts   bool
	EncryptsBy string

	// Datagrams says that its links are of UDP, for firewalls.
	Datagrams bool

	// Channels says that hosts of any MPI can use its links as IMPI's channels (IMPI ch.2,
	// H_IPV6 and H_PORT), except with the settings NotForChannels.
	Channels       bool
	NotForChannels []string
}

// names returns the names of the transports in the list whose NeedsBlock is needBlock, in its
// order.
func names(list []Builtin, needBlock bool) (names []string) {
	for _, x := range list {
		if x.NeedsBlock == needBlock {
			names = append(names, x.Name)
		}
	}
	return names
}

func known(list []Builtin, name string) (x Builtin, ok bool) {
	i := slices.IndexFunc(list, func(x Builtin) bool { return x.Name == name })
	if i < 0 {
		return Builtin{}, false
	}
	return list[i], true
}

// Known returns a built-in transport, or the zero Builtin for other names.
func (j *Job) Known(name string) Builtin {
	x, _ := known(j.Builtins, name)
	return x
}

// Encrypted reports whether the links of a built-in transport are encrypted with these
// settings. It returns false for others, which only their process knows.
func (t Transport) Encrypted() bool {
	on, _ := t.SettingMap()[t.Known.EncryptsBy].(bool)
	return t.Builtin && (t.Known.Encrypts || t.Known.EncryptsBy != "" && on)
}

// EncryptRemedy says how the sites of a job get encrypted links; with is inserted after the
// transports.
func (j *Job) EncryptRemedy(with string) string {
	var by []string
	for _, x := range j.Builtins {
		if x.Encrypts {
			by = append(by, quote(x.Name))
		}
	}
	for _, x := range j.Builtins {
		if x.EncryptsBy != "" {
			by = append(by, quote(x.Name)+" with "+x.EncryptsBy+" = true")
		}
	}
	return "give both sites transport " + strings.Join(by, ", or ") + with + ", and name it in prefer"
}
