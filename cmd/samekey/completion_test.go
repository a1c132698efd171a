package main

import (
	"os/exec"
	"strings"
	"testing"
)

// Each shell's script asks the program, and bash can parse its script.
func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		code, stdout, stderr := call(t, nil, "completion", shell)
		if code != 0 || !strings.Contains(stdout, "__complete") || !strings.Contains(stdout, "samekey") {
			t.Errorf("%s: code %d, %s\n%.300s", shell, code, stderr, stdout)
		}
		if shell != "bash" {
			continue
		}
		bash := exec.CommandContext(t.Context(), "bash", "-n")
		bash.Stdin = strings.NewReader(stdout)
		if out, err := bash.CombinedOutput(); err != nil {
			t.Errorf("bash: %v: %s", err, out)
		}
	}
}

// The program answers the scripts with commands, and with flags and their texts.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		typed []string
		want  []string
	}{
		{[]string{"st"}, []string{"stack\tWrite the template"}},
		{[]string{""}, []string{"check\t", "init\t", "local\t", "vet\t", "completion\t"}},
		{[]string{"stack", "--st"}, []string{"--standalone\t"}},
		{[]string{"local", "-"}, []string{"--template\t", "--watch\t"}},
	} {
		code, stdout, stderr := call(t, nil, append([]string{"__complete"}, tt.typed...)...)
		for _, want := range tt.want {
			if code != 0 || !strings.Contains("\n"+stdout, "\n"+want) {
				t.Errorf("%v: code %d, %s: no %q in\n%s", tt.typed, code, stderr, want, stdout)
			}
		}
	}
}
