package apigateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// errImplicitDeny matches the error of policy.allows if no statement of the policy
// applies to the request. That error also matches [ErrForbidden].
var errImplicitDeny = fmt.Errorf("no statement allows it: %w", ErrForbidden)

// policy is the part of an IAM policy that authorizers use.
type policy struct {
	Statement statements `json:"Statement"`
}

type statements []statement

type statement struct {
	Effect   string   `json:"Effect"`
	Action   oneOrAll `json:"Action"`
	Resource oneOrAll `json:"Resource"`
	// These parts can't be evaluated here. A statement that has one of them is an error.
	NotAction, NotResource, Condition json.RawMessage
}

// UnmarshalJSON reads one statement, or a list of them.
func (s *statements) UnmarshalJSON(data []byte) error {
	var list []statement
	if err := json.Unmarshal(data, &list); err == nil {
		*s = list
		return nil
	}
	var one statement
	err := json.Unmarshal(data, &one)
	*s = statements{one}
	return err
}

// oneOrAll is a text or a list of texts.
type oneOrAll []string

func (o *oneOrAll) UnmarshalJSON(data []byte) error {
	var one string
	if err := json.Unmarshal(data, &one); err == nil {
		*o = oneOrAll{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(o))
}

// policy.allows returns nil if at least one statement of the policy allows a request
// with this ARN, and no statement denies the request.
func (p *policy) allows(arn string) error {
	allowed := false
	for _, s := range p.Statement {
		if s.NotAction != nil || s.NotResource != nil || s.Condition != nil {
			return fmt.Errorf("%w: NotAction, NotResource and Condition are not judged here", errAuthorizer)
		}
		if !matchesAny(s.Action, "execute-api:invoke", true) || !matchesAny(s.Resource, arn, false) {
			continue
		}
		switch s.Effect {
		case "Allow":
			allowed = true
		case "Deny":
			return fmt.Errorf("a statement denies it: %w", ErrForbidden)
		default:
			return fmt.Errorf("%w: effect %q", errAuthorizer, s.Effect)
		}
	}
	if !allowed {
		return errImplicitDeny
	}
	return nil
}

func explicitDeny(err error) bool {
	return errors.Is(err, ErrForbidden) && !errors.Is(err, errImplicitDeny)
}

func matchesAny(patterns []string, s string, foldCase bool) bool {
	for _, p := range patterns {
		if foldCase {
			p = strings.ToLower(p)
		}
		if wildcard(p, s) {
			return true
		}
	}
	return false
}

// wildcard reports whether pattern matches the whole of s. In pattern, * stands for any
// characters, even slashes, and ? stands for a single character.
func wildcard(pattern, s string) bool {
	// star is the index in pattern of the * that was reached last. The part of s that
	// this * matches ends before s[mark].
	star, mark := -1, 0
	p, i := 0, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p++
			i++
		case star >= 0:
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
