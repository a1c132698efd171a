package servers

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/samekey/samekey/internal/servers/serverstest"
)

func TestParseJavaMajor(t *testing.T) {
	t.Parallel()
	for out, want := range map[string]int{
		"openjdk version \"17.0.15\" 2025-04-15\nOpenJDK Runtime Environment":  17,
		"java version \"1.8.0_292\"":                                           8,
		"openjdk version \"25\" 2025-09-16":                                    25,
		"openjdk version \"21-ea\" 2023-09-19":                                 21,
		"Picked up JAVA_TOOL_OPTIONS: -Dversion=9\nopenjdk version \"11.0.2\"": 11,
	} {
		got, err := parseJavaMajor(out)
		if err != nil || got != want {
			t.Errorf("%q: got %d, %v; want %d", out, got, err, want)
		}
	}
	if got, err := parseJavaMajor("no runtime present"); err == nil {
		t.Errorf("got %d, want an error", got)
	}
}

func TestFindJavaTakesTheOneThatIsNewEnough(t *testing.T) {
	oldJava := `echo 'java version "1.8.0_292"' >&2`
	for _, tt := range []struct{ name, home, path, want string }{
		{"JAVA_HOME first", serverstest.NewJava, serverstest.NewJava, "home"},
		{"PATH if JAVA_HOME is old", oldJava, serverstest.NewJava, "path"},
		{"PATH if JAVA_HOME is unset", "", serverstest.NewJava, "path"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inPath := serverstest.Commands(t, map[string]string{"java": tt.path})
			t.Setenv("PATH", inPath)
			t.Setenv("JAVA_HOME", "")
			want := filepath.Join(inPath, "java")
			if tt.home != "" {
				home := t.TempDir()
				bin := serverstest.Commands(t, map[string]string{"java": tt.home})
				if err := os.Rename(bin, filepath.Join(home, "bin")); err != nil {
					t.Fatal(err)
				}
				t.Setenv("JAVA_HOME", home)
				if tt.want == "home" {
					want = filepath.Join(home, "bin", "java")
				}
			}
			got, err := findJava(t.Context(), 17)
			if err != nil || got != want {
				t.Errorf("got %s, %v; want %s", got, err, want)
			}
		})
	}
}
