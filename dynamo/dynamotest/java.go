package dynamotest

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

// minJava is what DynamoDB Local's class files ask for.
const minJava = 17

// tryJava runs DynamoDB Local on this machine's Java, from jars in the cache
// or, where there are none, from jars that Maven gets.
func tryJava(ctx context.Context, s *search) (*DB, error) {
	java, err := findJava(ctx)
	if err != nil {
		s.miss(fmt.Sprintf("Java %d or newer", minJava), err)
		return nil, nil
	}
	root, err := cacheRoot()
	if err != nil {
		return nil, err
	}
	// Before any download: what can't be kept on loopback isn't started.
	if err := canKeepLocal(); err != nil {
		s.miss("Java", err)
		return nil, nil
	}
	b := ddbLocal()
	dir, from := b.dir(root), "Java with cached jars"
	if err := b.cached(dir); err != nil {
		s.miss(from, err)
		from = "Java with Maven"
		switch err := b.install(ctx, root); {
		case errors.Is(err, errChecksum):
			return nil, err
		case err != nil:
			s.miss(from, err)
			return nil, nil
		}
	}
	db, err := startLocal(ctx, java, dir)
	if err != nil {
		s.miss(from, err)
		return nil, nil
	}
	return db, nil
}

// findJava returns the path of a java command that is new enough: the one of
// JAVA_HOME before the one in PATH.
func findJava(ctx context.Context) (string, error) {
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
		if err == nil && major >= minJava {
			return filepath.Abs(path)
		}
		if err == nil {
			err = fmt.Errorf("%s is Java %d", path, major)
		}
		problems = join(problems, err)
	}
	return "", fmt.Errorf("%w: install a Java %d runtime", problems, minJava)
}

func join(a, b error) error {
	if a == nil {
		return b
	}
	return fmt.Errorf("%w, %w", a, b)
}

func javaMajor(ctx context.Context, path string) (int, error) {
	cmd := exec.CommandContext(ctx, path, "-version")
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%s -version: %w: %s", path, err, bytes.TrimSpace(out))
	}
	return parseJavaMajor(string(out))
}

// parseJavaMajor reads "17.0.15", "25", "21-ea" and the "1.8.0_292" of old.
func parseJavaMajor(out string) (int, error) {
	m := regexp.MustCompile(`version "(?:1\.)?(\d+)`).FindStringSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("no version in what java -version says: %s", out)
	}
	return strconv.Atoi(m[1])
}
