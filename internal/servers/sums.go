package servers

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ErrChecksum matches an error about a bundle whose folder lib doesn't have exactly the
// files in the bundle's Sums: a file is missing, is not listed, or has another
// checksum.
var ErrChecksum = errors.New("not the files pinned in SHA256SUMS")

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

// checkNames checks that the folder lib has the files in sums, and no others. Java
// would also run a file that isn't pinned, because the class path is the whole folder.
func checkNames(lib string, sums map[string]string) error {
	entries, err := os.ReadDir(lib)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrChecksum, err)
	}
	missing := len(sums)
	for _, e := range entries {
		if _, ok := sums[e.Name()]; !ok {
			return fmt.Errorf("%w: %s is not listed", ErrChecksum, e.Name())
		}
		missing--
	}
	if missing == 0 {
		return nil
	}
	for name := range sums {
		if _, err := os.Lstat(filepath.Join(lib, name)); err != nil {
			return fmt.Errorf("%w: %d missing, such as %s", ErrChecksum, missing, name)
		}
	}
	return nil
}

func checkSums(lib string, sums map[string]string) error {
	for name, want := range sums {
		got, err := fileSum(filepath.Join(lib, name))
		if err != nil {
			return fmt.Errorf("%w: %w", ErrChecksum, err)
		}
		if got != want {
			return fmt.Errorf("%w: %s has sha256 %s, want %s", ErrChecksum, name, got, want)
		}
	}
	return nil
}
