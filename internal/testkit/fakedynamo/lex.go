package fakedynamo

import (
	"strings"
	"unicode"
)

// tokens cuts an expression into names, placeholders and signs.
func tokens(s string) (all []string) {
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n':
			i++
		case inWord(rune(c)):
			end := i
			for end < len(s) && inWord(rune(s[end])) {
				end++
			}
			all = append(all, s[i:end])
			i = end
		case strings.HasPrefix(s[i:], "<>"), strings.HasPrefix(s[i:], "<="), strings.HasPrefix(s[i:], ">="):
			all = append(all, s[i:i+2])
			i += 2
		default:
			all = append(all, s[i:i+1])
			i++
		}
	}
	return all
}

func inWord(c rune) bool {
	return c == '_' || c == '#' || c == ':' || unicode.IsLetter(c) || unicode.IsDigit(c)
}
