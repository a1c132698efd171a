package localrun

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/internal/lambdalocal"
)

// Made by TestMain: a folder with the template and the function, and a program.
var stackDir, worldProgram string

func TestMain(m *testing.M) { os.Exit(mainOf(m)) }

func mainOf(m *testing.M) int {
	dir, err := os.MkdirTemp("", "localrun")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a test's folder
	stackDir, worldProgram = dir, filepath.Join(dir, "world")
	template, err := os.ReadFile("testdata/template.yaml")
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "template.yaml"), template, 0o600); err != nil {
		panic(err)
	}
	for pkg, out := range map[string]string{"./testdata/fn": filepath.Join(dir, "dist", "bootstrap"), "./testdata/world": worldProgram} {
		if err := lambdalocal.BuildBootstrap(context.Background(), pkg, out); err != nil {
			panic(err)
		}
	}
	return dynamotest.Main(m)
}

// syncBuffer is a buffer for writers in other goroutines.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
