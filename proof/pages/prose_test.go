package pages_test

import (
	"regexp"
	"strings"
	"testing"
)

var (
	word    = regexp.MustCompile(`[A-Za-z][A-Za-z'’-]*`)
	comment = regexp.MustCompile(`(?s)<!--.*?-->`)
	tables  = regexp.MustCompile(`(?s)<!-- generated [a-z-]+ -->.*?<!-- end [a-z-]+ -->`)
)

// maxWhat is the number of times that a page may say "what" in 1,000 words. The
// comments of connect-go, river and certmagic have 0.2 to 0.4. A page above the
// limit speaks of "what the handler does" instead of the handler's effects.
const maxWhat = 1

// Pages name things instead of saying "what". A short page may say it twice.
func TestPagesNameThings(t *testing.T) {
	t.Parallel()
	checked := 0
	for page, text := range pages(t) {
		if page != "README.md" && page != "CONTRIBUTING.md" && !strings.HasPrefix(page, "docs/") {
			continue
		}
		checked++
		words, whats := 0, 0
		for _, w := range word.FindAllString(prose(text), -1) {
			words++
			if strings.EqualFold(w, "what") {
				whats++
			}
		}
		if limit := max(2, words*maxWhat/1000); whats > limit {
			t.Errorf("%s says \"what\" %d times in %d words, at most %d: name the thing", page, whats, words, limit)
		}
	}
	if checked < 15 {
		t.Errorf("%d pages found: something is wrong with this test", checked)
	}
}

// prose is a page without its code, generated blocks, comments and link targets.
func prose(text string) string {
	text = comment.ReplaceAllString(fence.ReplaceAllString(tables.ReplaceAllString(text, ""), ""), "")
	return link.ReplaceAllString(codeSpan.ReplaceAllString(text, ""), "]")
}
