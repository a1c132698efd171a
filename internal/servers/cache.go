package servers

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// CacheRoot returns the folder that holds the installs: the one that the
// environment variable names, or samekey in [os.UserCacheDir]. It is never below
// a relative path: go test runs in the folder of the package, where jars would
// end up in somebody's repository.
func CacheRoot(variable string) (string, error) {
	if dir := os.Getenv(variable); dir != "" {
		if !filepath.IsAbs(dir) {
			return "", fmt.Errorf("%s=%q is a relative path: make it absolute", variable, dir)
		}
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder for the jars: %w: set %s", err, variable)
	}
	return filepath.Join(dir, "samekey"), nil
}

// makeTmp makes a folder for the temporary files of one process, which, killed,
// may not remove them. What was left there by those whose parent was killed too
// is removed on this occasion.
func makeTmp(dir string) (string, error) {
	removeOld(dir, "tmp-")
	tmp, err := os.MkdirTemp(dir, "tmp-"+strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return "", fmt.Errorf("making a folder for temporary files: %w", err)
	}
	return tmp, nil
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
