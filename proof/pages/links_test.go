package pages_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	fence    = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	codeSpan = regexp.MustCompile("`[^`\n]*`")
	link     = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
	anchorID = regexp.MustCompile(`<a id="([^"]+)">`)
	ours     = "https://github.com/samekey/samekey/blob/main/"
)

// Every link within the repository leads to a file, and to a heading where it
// names one. Others are not followed: tests need no network.
func TestLinks(t *testing.T) {
	t.Parallel()
	all := pages(t)
	links := 0
	for page, text := range all {
		prose := codeSpan.ReplaceAllString(fence.ReplaceAllString(text, ""), "")
		for _, m := range link.FindAllStringSubmatch(prose, -1) {
			target := m[1]
			if rest, ok := strings.CutPrefix(target, ours); ok {
				target = path.Join(strings.Repeat("../", strings.Count(page, "/")), rest)
			}
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(target, "#")
			to := page
			if file != "" {
				to = path.Join(path.Dir(page), file)
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s: %s: there is no %s", page, m[1], to)
				continue
			}
			if anchor != "" && path.Ext(to) == ".md" && !anchors(all[to])[anchor] {
				t.Errorf("%s: %s: %s has no such heading", page, m[1], to)
			}
		}
	}
	if links < 50 {
		t.Errorf("%d links found: something is wrong with this test", links)
	}
}

// Errors name the page that explains them. What the engine's lead to is tested
// beside its table, in idem.
func TestWebhookErrorsAreExplained(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile(filepath.Join(root, "idem/webhook/answer.go"))
	if err != nil {
		t.Fatal(err)
	}
	at := anchors(pages(t)["docs/use/webhooks.md"])
	codes := regexp.MustCompile(`refusal\{http\.Status\w+, "(\w+)"`).FindAllStringSubmatch(string(src), -1)
	if len(codes) < 10 {
		t.Fatalf("%d codes found: something is wrong with this test", len(codes))
	}
	for _, m := range codes {
		if !at[m[1]] {
			t.Errorf("docs/use/webhooks.md has nothing at #%s", m[1])
		}
	}
}

// anchors are what a page can be linked to at, as GitHub makes them.
func anchors(text string) map[string]bool {
	found := make(map[string]bool)
	for _, m := range anchorID.FindAllStringSubmatch(text, -1) {
		found[m[1]] = true
	}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		found[slug(m[1])] = true
	}
	return found
}

func slug(heading string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == ' ' || c == '-':
			return '-'
		case unicode.IsLetter(c) || unicode.IsDigit(c) || c == '_':
			return unicode.ToLower(c)
		}
		return -1
	}, heading)
}
