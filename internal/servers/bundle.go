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

// Bundle describes an install: jars, and files beside them. The folder of an install
// contains pom.xml, the Files, lib/ with the jars, and a marker that is written last.
type Bundle struct {
	// Name is the folder's name, which contains the version.
	Name string
	// POM lists the jars as dependencies with pinned versions.
	POM []byte
	// Sums has a line "<sha256 in hex>  <file name>" for each file that Maven must put into
	// lib, and no other line.
	Sums []byte
	// Files are the contents of the files beside lib, keyed by name.
	Files map[string][]byte
}

// Dir returns the folder of the bundle below root.
func (b Bundle) Dir(root string) string { return filepath.Join(root, b.Name) }

const markerFile = ".ok"

// Bundle.marker returns the content of the marker file. The content depends on the
// recipe (POM, Sums and the contents of Files), so that an install from another recipe
// is not used. Cached checks the names of Files.
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

// Cached returns nil if dir holds a finished install of this recipe. It compares the
// names of the jars and looks for the Files, so that it detects a partly emptied folder
// and a renamed file. It doesn't verify the checksums, since Install verified them before
// it wrote the marker.
func (b Bundle) Cached(dir string) error {
	got, err := os.ReadFile(filepath.Join(dir, markerFile))
	if err != nil {
		return fmt.Errorf("no jars in %s", dir)
	}
	if !bytes.Equal(got, b.marker()) {
		return fmt.Errorf("%s holds an install by another recipe", dir)
	}
	for name := range b.Files {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("no %s in %s", name, dir)
		}
	}
	sums, err := parseSums(b.Sums)
	if err != nil {
		return err
	}
	return checkNames(filepath.Join(dir, "lib"), sums)
}

// Install downloads the jars by Maven into b.Dir(root), unless they are already there.
// It fills a temporary folder and renames it to b.Dir(root) when the install is
// complete, so that even a crash leaves no partial install in b.Dir(root). A lock keeps
// two processes from downloading at the same time.
//
// The error matches [ErrChecksum] if Maven downloaded files other than the pinned
// ones.
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

// Bundle.publish renames the folder tmp to dir. If dir already has a complete install,
// publish leaves dir as it is. If dir has anything else, publish moves dir away before
// the rename.
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
