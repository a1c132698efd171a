package servers

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// CacheRoot returns the folder of the installs. The environment variable names this
// folder. If the variable is empty, the folder is samekey in [os.UserCacheDir]. A
// relative path is an error, because go test would resolve it in the package's folder,
// and put the jars into a repository.
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

// makeTmp makes a folder for the temporary files of a process. It also removes old
// folders of killed processes.
func makeTmp(dir string) (string, error) {
	removeOld(dir, "tmp-")
	tmp, err := os.MkdirTemp(dir, "tmp-"+strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return "", fmt.Errorf("making a folder for temporary files: %w", err)
	}
	return tmp, nil
}

// removeOld removes entries of dir that have the prefix and are older than a day.
// Installs and test runs are shorter than a day, so they don't lose entries that they
// use.
func removeOld(dir, prefix string) {
	entries, _ := os.ReadDir(dir) // an error doesn't matter, since entries that stay only cost space
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasPrefix(e.Name(), prefix) && time.Since(info.ModTime()) > 24*time.Hour {
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}
