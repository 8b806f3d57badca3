// Package provenance says when, and from which commit, a published result was made, and how many
// commits the code has changed since.
package provenance

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Stamp is the day of a result and the commit of the code that was tested.
type Stamp struct {
	Day    string `json:"day"`    // as 2006-01-02
	Commit string `json:"commit"` // abbreviated; "-dirty" follows if there are uncommitted changes
}

// Now returns the Stamp of the checkout in root at present. Files below docs/ do not count as
// changes: results are kept there.
func Now(root string) (Stamp, error) {
	commit, err := git(root, "rev-parse", "--short=12", "HEAD")
	if err != nil {
		return Stamp{}, err
	}
	changed, err := git(root, "status", "--porcelain", "--", ".", ":!docs")
	if err != nil {
		return Stamp{}, err
	}
	if changed != "" {
		commit += "-dirty"
	}
	return Stamp{Day: time.Now().UTC().Format(time.DateOnly), Commit: commit}, nil
}

// Dates lists the days and commits of results, each once, in their order.
func Dates(all []Stamp) string {
	var list []string
	for _, m := range all {
		s := fmt.Sprintf("%s of commit %s", m.Day, m.Commit)
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return strings.Join(list, ", and on ")
}

var ofCommit = regexp.MustCompile(`of commit ([0-9a-f]{7,40}(?:-dirty)?)\b`)

// Commits lists the commits that a published text names.
func Commits(text string) (all []string) {
	for _, m := range ofCommit.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// CommitsBehind returns the number of commits from a commit to the last change of some folders.
func CommitsBehind(root, commit string, folders ...string) (int, error) {
	commit = strings.TrimSuffix(commit, "-dirty")
	if _, err := git(root, "merge-base", "--is-ancestor", commit, "HEAD"); err != nil {
		return 0, fmt.Errorf("commit %s is not in the history of this checkout: %w", commit, err)
	}
	last, err := git(root, append([]string{"log", "-1", "--format=%H", commit + "..HEAD", "--"}, folders...)...)
	if err != nil || last == "" {
		return 0, err
	}
	list, err := git(root, "rev-list", commit+".."+last)
	return len(strings.Fields(list)), err
}

// History returns an error if the history of the checkout in root cannot be read.
func History(root string) error {
	switch shallow, err := git(root, "rev-parse", "--is-shallow-repository"); {
	case err != nil:
		return fmt.Errorf("there is no git, or this is no checkout: %w", err)
	case shallow == "true":
		return errors.New("the history of this checkout is cut off: git fetch --unshallow")
	}
	return nil
}

func git(root string, args ...string) (string, error) {
	out, err := exec.Command("git", append([]string{"-C", root}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return strings.TrimSpace(string(out)), nil
}
