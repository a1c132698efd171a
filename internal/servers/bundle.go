package servers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

const mavenGoal = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"

// A Bundle describes an install: the jars, and the files beside them. Laid
// out in a folder it is lib/ with the jars, pom.xml, the files and, written
// last, a marker.
type Bundle struct {
	// Name is the folder's, with the version in it.
	Name string
	// POM has the jars as dependencies, with all versions pinned.
	POM []byte
	// Sums has a line "<sha256 in hex>  <file name>" for each file that Maven
	// must put into lib, and for no other.
	Sums []byte
	// Files are written beside lib as they are, by their names.
	Files map[string][]byte
}

// Dir returns the folder of the bundle below root.
func (b Bundle) Dir(root string) string { return filepath.Join(root, b.Name) }

const markerFile = ".ok"

// marker is the content of the marker file. It changes with the recipe, so an
// install by another recipe isn't taken for ours.
func (b Bundle) marker() []byte {
	h := sha256.New()
	add := func(part []byte) {
		fmt.Fprintf(h, "%d\n", len(part))
		h.Write(part)
	}
	add(b.POM)
	add(b.Sums)
	for _, name := range slices.Sorted(maps.Keys(b.Files)) {
		add(b.Files[name])
	}
	return []byte(hex.EncodeToString(h.Sum(nil)) + "\n")
}

// Cached returns nil if dir holds a finished install by this recipe. The
// checksums were verified before the marker was written; here only the names
// are compared, which takes no time and catches a half-emptied folder.
func (b Bundle) Cached(dir string) error {
	got, err := os.ReadFile(filepath.Join(dir, markerFile))
	if err != nil {
		return fmt.Errorf("no jars in %s", dir)
	}
	if !bytes.Equal(got, b.marker()) {
		return fmt.Errorf("%s holds an install by another recipe", dir)
	}
	sums, err := parseSums(b.Sums)
	if err != nil {
		return err
	}
	return checkNames(filepath.Join(dir, "lib"), sums)
}

// Install lets Maven get the jars and puts them into b.Dir(root), unless they
// are there. It works in a folder of its own which becomes the install by one
// rename, so that neither a crash nor a second process can leave or see half of
// one. The lock only spares a second download: correctness doesn't hang on it.
//
// The error matches [ErrChecksum] if Maven got other files than those pinned.
func (b Bundle) Install(ctx context.Context, root string) error {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return errors.New("mvn isn't in PATH: install Apache Maven")
	}
	if err := os.MkdirAll(root, 0o750); err != nil {
		return fmt.Errorf("making the cache folder: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(root, b.Name+".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if b.Cached(b.Dir(root)) == nil {
		return nil // another process was faster
	}
	removeOld(root, b.Name+".tmp-")
	tmp, err := os.MkdirTemp(root, b.Name+".tmp-")
	if err != nil {
		return fmt.Errorf("making a folder to install into: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	if err := b.fill(ctx, mvn, tmp); err != nil {
		return err
	}
	return b.publish(tmp, b.Dir(root))
}

func (b Bundle) fill(ctx context.Context, mvn, tmp string) error {
	pom, lib := filepath.Join(tmp, "pom.xml"), filepath.Join(tmp, "lib")
	if err := os.WriteFile(pom, b.POM, 0o600); err != nil {
		return err
	}
	for name, content := range b.Files {
		if err := os.WriteFile(filepath.Join(tmp, name), content, 0o600); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, mvn, "-B", "-q", "-Dstyle.color=never", "-f", pom, mavenGoal,
		"-DoutputDirectory="+lib, "-DincludeScope=runtime")
	cmd.Dir = tmp
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mvn couldn't get the jars: %w: %s", err, out)
	}
	sums, err := parseSums(b.Sums)
	if err != nil {
		return err
	}
	if err := checkNames(lib, sums); err != nil {
		return fmt.Errorf("%w; nothing is installed: see what repository Maven is set to use", err)
	}
	if err := checkSums(lib, sums); err != nil {
		return fmt.Errorf("%w; nothing is installed: see what repository Maven is set to use", err)
	}
	return os.WriteFile(filepath.Join(tmp, markerFile), b.marker(), 0o600)
}

// publish renames tmp to dir. An install that is already there and whole is
// kept; anything else in its place is moved out of the way first.
func (b Bundle) publish(tmp, dir string) error {
	err := os.Rename(tmp, dir)
	if err == nil || b.Cached(dir) == nil {
		return nil
	}
	old := tmp + ".old"
	if err := os.Rename(dir, old); err != nil {
		return fmt.Errorf("moving a broken install away: %w", err)
	}
	defer func() { _ = os.RemoveAll(old) }()
	if err := os.Rename(tmp, dir); err != nil && b.Cached(dir) != nil {
		return fmt.Errorf("putting the install in its place: %w", err)
	}
	return nil
}

func fileSum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
