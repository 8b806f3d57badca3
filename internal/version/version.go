// Package version says what a program of this repository was built from.
package version

import (
	"runtime/debug"
	"strings"
)

// Release is the version of all programs of this repository.
const Release = "0.1.0"

// String returns the release, with the commit and its date if the toolchain recorded them: "0.1.0
// (commit 0123456789ab of 2026-11-23)".
func String() string {
	info, _ := debug.ReadBuildInfo()
	return Of(info)
}

// Of is String of a program of this release with that build information, which may be nil.
func Of(info *debug.BuildInfo) string {
	if info == nil {
		return Release
	}
	said := make(map[string]string)
	for _, s := range info.Settings {
		said[s.Key] = s.Value
	}
	commit := said["vcs.revision"]
	if commit == "" {
		return Release
	}
	text := Release + " (commit " + commit[:min(12, len(commit))]
	if day, _, _ := strings.Cut(said["vcs.time"], "T"); day != "" {
		text += " of " + day
	}
	if said["vcs.modified"] == "true" {
		text += ", with changes"
	}
	return text + ")"
}
