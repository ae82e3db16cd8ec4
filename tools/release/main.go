// Command release makes the commit of a release, and proves that it can be installed. It is run in the
// directory tools, most often by scripts/release:
//
//	go run ./release v0.1.0
//
// The modules of this repository name each other by replace directives, so that a change of one is at once
// one of all. Who installs a command by its version may not have any, and who requires a module needs the
// versions of the others. So a release is a commit of its own, beside main: in it the modules that are
// released require each other at that version, with the sums that they will have. The commit is not pushed and
// no tag is made: the command says how to do both.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/semver"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: release VERSION, such as v0.1.0")
		os.Exit(2)
	}
	if err := release(context.Background(), "..", os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release makes the commit of a version on a branch of its own, and proves it before.
func release(ctx context.Context, top, version string) error {
	if err := checkVersion(version); err != nil {
		return err
	}
	changes, err := os.ReadFile(filepath.Join(top, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	if err := checkChanges(string(changes), version); err != nil {
		return err
	}
	changed, err := git(ctx, top, "status", "--porcelain")
	if err != nil {
		return err
	}
	if changed != "" {
		return fmt.Errorf("there are changes that are not committed: commit or stash them first\n%s", changed)
	}
	temp, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	tree, branch := filepath.Join(temp, "tree"), "release-"+version
	if _, err := git(ctx, top, "worktree", "add", "-q", "-b", branch, tree); err != nil {
		return fmt.Errorf("%w\nif an earlier try has left its branch: git branch -D %s", err, branch)
	}
	defer git(ctx, top, "worktree", "remove", "--force", tree)
	proxy := filepath.Join(temp, "proxy")
	if err := prepare(tree, proxy, version); err != nil {
		return err
	}
	if err := turnPages(tree); err != nil {
		return err
	}
	fmt.Println("installing it from an empty module")
	if err := prove(ctx, proxy, filepath.Join(temp, "proof"), version); err != nil {
		return err
	}
	if _, err := git(ctx, tree, "commit", "-q", "-a", "-m", "release: "+version+"\n\nThe modules require each other at this version."); err != nil {
		return err
	}
	fmt.Printf("%s is committed on the branch %s. To publish it:\n\n", version, branch)
	for _, m := range released {
		fmt.Printf("\tgit tag -a -m %s %s %s\n", version, m.tag(version), branch)
	}
	fmt.Printf("\tgit push origin %s\n", strings.Join(tags(version), " "))
	return nil
}

// checkVersion reports what is wrong with a version.
func checkVersion(version string) error {
	if !semver.IsValid(version) || semver.Canonical(version) != version || semver.Build(version) != "" {
		return fmt.Errorf("version %q: it must be like v0.1.0, or v0.1.0-rc.1", version)
	}
	if major := semver.Major(version); major != "v0" && major != "v1" {
		return fmt.Errorf("version %s: the paths of modules of %s end with /%s", version, major, major)
	}
	return nil
}

// checkChanges reports whether CHANGELOG.md says what a version is, with its date, first of all versions.
func checkChanges(changes, version string) error {
	headings := regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(changes, -1)
	want := regexp.MustCompile(`^\[?` + regexp.QuoteMeta(strings.TrimPrefix(version, "v")) + `\]? - \d{4}-\d\d-\d\d$`)
	for _, h := range headings {
		switch {
		case want.MatchString(h[1]):
			return nil
		case strings.Contains(h[1], "Unreleased"):
		default:
			return fmt.Errorf("CHANGELOG.md: the first heading is %q: it must be like \"## %s - 2026-01-31\"", h[1], strings.TrimPrefix(version, "v"))
		}
	}
	return fmt.Errorf("CHANGELOG.md has no heading \"## %s - DATE\": write what the version is", strings.TrimPrefix(version, "v"))
}

// tags returns the names of the tags of a version.
func tags(version string) (all []string) {
	for _, m := range released {
		all = append(all, m.tag(version))
	}
	return all
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
