package servers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// findJava returns the absolute path of a java command of the given version or a newer one.
// It tries the command in JAVA_HOME first, and then the command in PATH. The error says what
// is wrong with each command.
func findJava(ctx context.Context, version int) (string, error) {
	var candidates []string
	var problems error
	if home := os.Getenv("JAVA_HOME"); home != "" {
		candidates = append(candidates, filepath.Join(home, "bin", "java"))
	} else {
		problems = errors.New("JAVA_HOME isn't set")
	}
	if path, err := exec.LookPath("java"); err == nil {
		candidates = append(candidates, path)
	} else {
		problems = join(problems, errors.New("java isn't in PATH"))
	}
	for _, path := range candidates {
		major, err := javaMajor(ctx, path)
		if err == nil && major >= version {
			return filepath.Abs(path)
		}
		if err == nil {
			err = fmt.Errorf("%s is Java %d", path, major)
		}
		problems = join(problems, err)
	}
	return "", fmt.Errorf("%w: install a Java %d runtime", problems, version)
}

func join(a, b error) error {
	if a == nil {
		return b
	}
	return fmt.Errorf("%w, %w", a, b)
}

func javaMajor(ctx context.Context, path string) (int, error) {
	cmd := exec.CommandContext(ctx, path, "-version") //nolint:gosec // the user's own Java
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%s -version: %w: %s", path, err, bytes.TrimSpace(out))
	}
	return parseJavaMajor(string(out))
}

// parseJavaMajor returns the major version from the output of java -version. It
// understands versions such as "17.0.15", "25", "21-ea" and the old form "1.8.0_292".
func parseJavaMajor(out string) (int, error) {
	m := regexp.MustCompile(`version "(?:1\.)?(\d+)`).FindStringSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("no version in what java -version says: %s", out)
	}
	return strconv.Atoi(m[1])
}
