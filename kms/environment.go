package kms

import (
	"fmt"
	"strings"
)

// FromEnvironment returns a provider with settings from environment variables, so that
// functions, worker and operators can share settings. The variables are:
//
//	SAMEKEY_KMS_KEYS     required: ARNs of symmetric keys, with commas or blanks between
//	                     them: first the current key, then Options.Former
//	SAMEKEY_KMS_CONTEXT  Options.Context, as NAME=VALUE with commas between them;
//	                     default: table=NAME, where NAME is the table in IDEM_TABLE
//	IDEM_TABLE           name or ARN of the table; required without SAMEKEY_KMS_CONTEXT
//
// getenv is os.Getenv or a substitute. The error about a variable begins with the
// variable's name.
func FromEnvironment(api API, getenv func(string) string) (*Provider, error) {
	const keys, pairs, table = "SAMEKEY_KMS_KEYS", "SAMEKEY_KMS_CONTEXT", "IDEM_TABLE"
	named := strings.FieldsFunc(getenv(keys), separates)
	if len(named) == 0 {
		return nil, fmt.Errorf("%s is not set: write the ARN of a key, as arn:aws:kms:REGION:ACCOUNT:key/ID", keys)
	}
	bound := make(map[string]string)
	for pair := range strings.SplitSeq(getenv(pairs), ",") {
		name, value, found := strings.Cut(strings.TrimSpace(pair), "=")
		switch {
		case name != "" && value != "":
			bound[name] = value
		case name != "" || found:
			return nil, fmt.Errorf("%s has %q: write NAME=VALUE, with commas between them", pairs, pair)
		}
	}
	if len(bound) == 0 {
		name := getenv(table)
		if _, of, found := strings.Cut(name, ":table/"); found {
			name = of
		}
		if name == "" {
			return nil, fmt.Errorf("%s is not set: write the name of the table, to which data keys are bound, or set %s", table, pairs)
		}
		bound["table"] = name
	}
	p, err := New(api, named[0], func(o *Options) { o.Former, o.Context = named[1:], bound })
	if err != nil && api != nil {
		return nil, fmt.Errorf("%s: %w", keys, err)
	}
	return p, err
}

func separates(c rune) bool { return c == ',' || c == ' ' || c == '\n' || c == '\t' }
