package dynamotest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// localFiles are the recipe only: no jar may be among them (see the package
// documentation, "Licence").
//
//go:embed local
var localFiles embed.FS

// localVersion is the version of DynamoDB Local, as pinned in local/.
const localVersion = "3.3.1"

const mavenGoal = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"

// errChecksum means that a file is not the one pinned in SHA256SUMS.
var errChecksum = errors.New("not the files pinned in SHA256SUMS")

// A bundle says what to install: which jars, and what goes beside them. Laid
// out in a folder it is lib/ with the jars, pom.xml, log4j2.xml and, written
// last, the marker.
type bundle struct {
	name              string
	pom, sums, log4j2 []byte
}

func ddbLocal() bundle {
	return bundle{
		name:   "dynamodb-local-" + localVersion,
		pom:    localFile("pom.xml"),
		sums:   localFile("SHA256SUMS"),
		log4j2: localFile("log4j2.xml"),
	}
}

func localFile(name string) []byte {
	b, err := localFiles.ReadFile("local/" + name)
	if err != nil {
		panic("dynamotest: " + err.Error()) //nolint:forbidigo // it is embedded
	}
	return b
}

// cacheRoot is the folder that holds the installs. It is never below a
// relative path: go test runs in the folder of the package, where jars would
// end up in somebody's repository.
func cacheRoot() (string, error) {
	if dir := os.Getenv(envCache); dir != "" {
		if !filepath.IsAbs(dir) {
			return "", fmt.Errorf("%s=%q is a relative path: make it absolute", envCache, dir)
		}
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder for the jars: %w: set %s", err, envCache)
	}
	return filepath.Join(dir, "samekey"), nil
}

func (b bundle) dir(root string) string { return filepath.Join(root, b.name) }

const markerFile = ".ok"

// marker is the content of the marker file. It changes with the recipe, so an
// install by another recipe isn't taken for ours.
func (b bundle) marker() []byte {
	h := sha256.New()
	for _, part := range [][]byte{b.pom, b.sums, b.log4j2} {
		fmt.Fprintf(h, "%d\n", len(part))
		h.Write(part)
	}
	return []byte(hex.EncodeToString(h.Sum(nil)) + "\n")
}

// cached returns nil if dir holds a finished install by this recipe. The
// checksums were verified before the marker was written; here only the names
// are compared, which takes no time and catches a half-emptied folder.
func (b bundle) cached(dir string) error {
	got, err := os.ReadFile(filepath.Join(dir, markerFile))
	if err != nil {
		return fmt.Errorf("no jars in %s", dir)
	}
	if !bytes.Equal(got, b.marker()) {
		return fmt.Errorf("%s holds an install by another recipe", dir)
	}
	sums, err := parseSums(b.sums)
	if err != nil {
		return err
	}
	return checkNames(filepath.Join(dir, "lib"), sums)
}

// install lets Maven get the jars and puts them into b.dir(root). It works in
// a folder of its own which becomes the install by one rename, so that neither
// a crash nor a second process can leave or see half of one. The lock only
// spares a second download: correctness doesn't hang on it.
func (b bundle) install(ctx context.Context, root string) error {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return errors.New("mvn isn't in PATH: install Apache Maven")
	}
	if err := os.MkdirAll(root, 0o750); err != nil {
		return fmt.Errorf("making the cache folder: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(root, b.name+".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if b.cached(b.dir(root)) == nil {
		return nil // another process was faster
	}
	removeOld(root, b.name+".tmp-")
	tmp, err := os.MkdirTemp(root, b.name+".tmp-")
	if err != nil {
		return fmt.Errorf("making a folder to install into: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	if err := b.fill(ctx, mvn, tmp); err != nil {
		return err
	}
	return b.publish(tmp, b.dir(root))
}

func (b bundle) fill(ctx context.Context, mvn, tmp string) error {
	pom, lib := filepath.Join(tmp, "pom.xml"), filepath.Join(tmp, "lib")
	if err := os.WriteFile(pom, b.pom, 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(tmp, "log4j2.xml"), b.log4j2, 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, mvn, "-B", "-q", "-Dstyle.color=never", "-f", pom, mavenGoal,
		"-DoutputDirectory="+lib, "-DincludeScope=runtime")
	cmd.Dir = tmp
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mvn couldn't get the jars: %w: %s", err, out)
	}
	sums, err := parseSums(b.sums)
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
func (b bundle) publish(tmp, dir string) error {
	err := os.Rename(tmp, dir)
	if err == nil || b.cached(dir) == nil {
		return nil
	}
	old := tmp + ".old"
	if err := os.Rename(dir, old); err != nil {
		return fmt.Errorf("moving a broken install away: %w", err)
	}
	defer func() { _ = os.RemoveAll(old) }()
	if err := os.Rename(tmp, dir); err != nil && b.cached(dir) != nil {
		return fmt.Errorf("putting the install in its place: %w", err)
	}
	return nil
}

// removeOld removes what is in dir under a name with the prefix and so old that
// whoever made it must have been killed: no install, no run of tests lasts a
// day.
func removeOld(dir, prefix string) {
	entries, _ := os.ReadDir(dir) // litter costs space only
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasPrefix(e.Name(), prefix) && time.Since(info.ModTime()) > 24*time.Hour {
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}

// parseSums reads the lines "<sha256 in hex>  <file name>".
func parseSums(data []byte) (map[string]string, error) {
	sums := map[string]string{}
	for sc := bufio.NewScanner(bytes.NewReader(data)); sc.Scan(); {
		sum, name, ok := strings.Cut(sc.Text(), "  ")
		if !ok || len(sum) != 2*sha256.Size || name == "" || name != filepath.Base(name) {
			return nil, fmt.Errorf("SHA256SUMS: bad line %q", sc.Text())
		}
		sums[name] = sum
	}
	if len(sums) == 0 {
		return nil, errors.New("SHA256SUMS: no files")
	}
	return sums, nil
}

// checkNames wants exactly the listed files in lib: the class path is all of
// it, so a file that nobody pinned would be run as well.
func checkNames(lib string, sums map[string]string) error {
	entries, err := os.ReadDir(lib)
	if err != nil {
		return fmt.Errorf("%w: %w", errChecksum, err)
	}
	missing := len(sums)
	for _, e := range entries {
		if _, ok := sums[e.Name()]; !ok {
			return fmt.Errorf("%w: %s is not listed", errChecksum, e.Name())
		}
		missing--
	}
	if missing == 0 {
		return nil
	}
	for name := range sums {
		if _, err := os.Lstat(filepath.Join(lib, name)); err != nil {
			return fmt.Errorf("%w: %d missing, such as %s", errChecksum, missing, name)
		}
	}
	return nil
}

func checkSums(lib string, sums map[string]string) error {
	for name, want := range sums {
		got, err := fileSum(filepath.Join(lib, name))
		if err != nil {
			return fmt.Errorf("%w: %w", errChecksum, err)
		}
		if got != want {
			return fmt.Errorf("%w: %s has sha256 %s, want %s", errChecksum, name, got, want)
		}
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
