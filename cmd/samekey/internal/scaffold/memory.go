package scaffold

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// memoryFile lists the files of the samekey version that ran Init. A line has the
// checksum of a file's text in that version, and the file's path. Files that Init left
// alone have lines too.
const memoryFile = ".samekey-init"

const memoryHead = "# Checksums of the files that samekey init wrote. samekey init --check reads them.\n"

const memoryExample = "# example: "

// memory is the contents of memoryFile.
type memory struct {
	example string
	sums    map[string]string // checksums by path
}

// readMemory returns nil if Init was never run in the folder.
func readMemory(dir string) (*memory, error) {
	text, err := os.ReadFile(filepath.Join(dir, memoryFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := &memory{sums: make(map[string]string)}
	for lines := bufio.NewScanner(strings.NewReader(string(text))); lines.Scan(); {
		line := lines.Text()
		if example, ok := strings.CutPrefix(line, memoryExample); ok {
			m.example = example
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		checksum, path, ok := strings.Cut(line, "  ")
		if !ok {
			return nil, fmt.Errorf("%s: the line %q is not a checksum and a path", memoryFile, line)
		}
		m.sums[path] = checksum
	}
	return m, nil
}

// remember returns the text of memoryFile for the files of this version.
func remember(all []file, example string) string {
	var b strings.Builder
	b.WriteString(memoryHead)
	if example != "" {
		b.WriteString(memoryExample + example + "\n")
	}
	for _, f := range all {
		b.WriteString(sum(f.text) + "  " + f.path + "\n")
	}
	return b.String()
}
