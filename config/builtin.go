package config

import (
	"slices"
	"strings"
)

// Builtin is a transport that needs no plugin file, with those of its properties that are needed
// before its process runs. For a vendor's transport no properties are known before its process
// runs.
type Builtin struct {
	Name string

	// NeedsBlock is true if the transport has settings without a default: a site has it only if the
	// file has a block for it.
	NeedsBlock bool

	// Machine is true if the transport's links stay on one machine, and Memory if they use memory
	// that both ends share.
	Machine, Memory bool

	// Encrypts is true if the transport's links are always encrypted. EncryptsBy is the name of the
	// bool setting that turns encryption on, or empty if there is none.
	Encrypts   bool
	EncryptsBy string

	// Datagrams is true if the transport's links use UDP, which matters for firewalls.
	Datagrams bool

	// Channels is true if hosts of any MPI can use the transport's links as IMPI's channels (IMPI
	// ch.2, H_IPV6 and H_PORT), except with the settings in NotForChannels.
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

// Known returns the built-in transport called name, or the zero Builtin for other names.
func (j *Job) Known(name string) Builtin {
	x, _ := known(j.Builtins, name)
	return x
}

// Encrypted reports whether the links of a built-in transport are encrypted with these settings.
// For other transports it returns false, since only their process can tell.
func (t Transport) Encrypted() bool {
	on, _ := t.SettingMap()[t.Known.EncryptsBy].(bool)
	return t.Builtin && (t.Known.Encrypts || t.Known.EncryptsBy != "" && on)
}

// EncryptRemedy returns a text that explains how the sites of a job get encrypted links; with is
// inserted after the transports.
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
