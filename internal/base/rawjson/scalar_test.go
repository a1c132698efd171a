package rawjson

import (
	"regexp"
	"testing"
)

// TestIntegers compares the form of integers with its regular expression, over every
// text of up to four characters of an alphabet.
func TestIntegers(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)
	const alphabet = "-0129.e \n"
	texts, all := []string{""}, 0
	for range 5 {
		var longer []string
		for _, s := range texts {
			if got, want := integer([]byte(s)), form.MatchString(s); got != want {
				t.Errorf("%q: got %v, want %v", s, got, want)
			}
			all++
			for _, c := range alphabet {
				longer = append(longer, s+string(c))
			}
		}
		texts = longer
	}
	if all != 1+9+81+729+6561 {
		t.Errorf("%d texts", all)
	}
}
