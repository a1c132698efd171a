// Package functionname splits the names of Lambda functions.
package functionname

import "strings"

// Split returns a function's name, and its version or alias as the qualifier. Without a
// version or alias, the qualifier is "". The parameter function has one of Lambda's
// forms: NAME, NAME:QUALIFIER, ACCOUNT:function:NAME or an ARN.
func Split(function string) (name, qualifier string) {
	if _, rest, ok := strings.Cut(function, ":function:"); ok {
		function = rest
	}
	name, qualifier, _ = strings.Cut(function, ":")
	return name, qualifier
}
