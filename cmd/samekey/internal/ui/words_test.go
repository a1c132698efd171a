package ui_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/state"
)

// The page has a text for each reason.
func TestPageHasTheReasonsWords(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("static/dom.js")
	if err != nil {
		t.Fatal(err)
	}
	table := func(name string) map[string]string {
		all := make(map[string]string)
		block := regexp.MustCompile(`const ` + name + ` = \{([^}]*)\}`).FindSubmatch(script)
		if block == nil {
			t.Fatalf("dom.js has no table %s", name)
		}
		for _, m := range regexp.MustCompile(`(\w+): "([^"]*)"`).FindAllSubmatch(block[1], -1) {
			all[string(m[1])] = string(m[2])
		}
		return all
	}
	words, sentences := make(map[string]string), make(map[string]string)
	for _, r := range state.Reasons {
		words[string(r.Reason)], sentences[string(r.Reason)] = r.Word, r.Says
	}
	if diff := cmp.Diff(words, table("reasons")); diff != "" {
		t.Errorf("words (-list +page):\n%s", diff)
	}
	if diff := cmp.Diff(sentences, table("longReasons")); diff != "" {
		t.Errorf("sentences (-list +page):\n%s", diff)
	}
	var people []string
	for _, m := range regexp.MustCompile(`"(\w+)"`).FindAllSubmatch(regexp.MustCompile(`const people = \[.*\]`).Find(script), -1) {
		people = append(people, string(m[1]))
	}
	if diff := cmp.Diff(state.ReasonNames(true), people); diff != "" {
		t.Errorf("reasons to wait for people (-list +page):\n%s", diff)
	}
}
