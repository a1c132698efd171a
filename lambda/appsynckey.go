package lambda

import (
	"errors"
	"fmt"

	"github.com/samekey/samekey/internal/base/rawjson"
)

// AppSyncKey makes the key of a call that AppSync makes to a direct Lambda resolver.
// The key consists of the field, the caller, and the client's key. The client sends the
// client's key in an argument of the field. The parameter argument is a JSON Pointer to
// the client's key; the pointer begins at the payload's arguments:
//
//	lambda.Direct[Charge, Receipt](lambda.AppSyncKey("/input/idempotencyKey"))
//
// A retry must have the same field, arguments and parent. The parent is the payload's
// source; a field of Query or Mutation has no parent. Headers, claims and the selection
// are not compared. For a replay, AppSync applies the retry's selection to the first
// answer.
//
// The caller is one of these: the subject and issuer in the token of a user pool or an
// OpenID provider, a user of an identity pool, an IAM user, an account's root, or a
// person of IAM Identity Center. A call with an API key doesn't name the caller, so an
// adapter of [Direct] refuses the call ([idem.ErrScope]). To accept these calls, set
// [DirectOptions.Scope], or use [idem.OneScope] if all callers may share their keys.
//
// The parameter caller has further pointers, which begin at the payload's identity and
// lead to the caller's name. With such pointers, a call with an API key is always
// refused ([idem.ErrKeyInvalid]). Two kinds of calls are refused without such pointers:
//   - Calls through a Lambda authorizer, which has no standard field for the caller. Use, for
//     example, AppSyncKey("/key", "/resolverContext/user").
//   - Calls by a session of a role that isn't of IAM Identity Center: the session may be a
//     person, or one of a program's many sessions. If each session is a caller, use
//     AppSyncKey("/key", "/userArn").
//
// BatchInvoke calls are always refused.
//
// In GraphQL an answer may report a failure. Set [idem.Options.Stored] to
// [GraphQLStored], so that failures aren't stored.
func AppSyncKey(argument string, caller ...string) BodyKey {
	path := parsePointers("AppSyncKey", []string{argument})
	callers := parsePointers("AppSyncKey", caller)
	return BodyKey{
		shared: func(body []byte) bool { return body != nil && len(callers) == 0 && appSyncAnonymous(body) },
		Key: func(body []byte) (string, error) {
			parts, arguments, err := appSyncField(body)
			if err != nil {
				return "", err
			}
			who, err := appSyncCaller(body, callers)
			if err != nil {
				return "", err
			}
			key, err := rawjson.Texts(arguments, path)
			if err != nil {
				return "", fmt.Errorf("/arguments%w", err)
			}
			parts = append(append([]string{"appsync"}, parts...), who...)
			return textKey(append(parts, key...)...), nil
		},
		Same: func(body []byte) ([]byte, error) {
			parts, arguments, err := appSyncField(body)
			if err != nil {
				return nil, err
			}
			if arguments, err = canonical("/arguments", arguments); err != nil {
				return nil, err
			}
			parent, err := appSyncParent(body)
			return []byte(digestKey(append(append(parts, string(arguments)), parent...)...)), err
		},
	}
}

// appSyncField returns the names of the resolved field's parent type and of the field,
// and the field's arguments.
func appSyncField(body []byte) (field []string, arguments []byte, err error) {
	field, err1 := rawjson.Texts(body, []rawjson.Pointer{rawjson.Member("info", "parentTypeName"), rawjson.Member("info", "fieldName")})
	arguments, err2 := rawjson.Member("arguments").Find(body)
	if err := errors.Join(err1, err2); err != nil {
		return nil, nil, fmt.Errorf("not what AppSync hands to a direct resolver: %w", err)
	}
	return field, arguments, nil
}

// appSyncParent returns the parent of the resolved field, or nil for a field of Query
// or Mutation. If the field belongs to the objects of a list, AppSync calls the
// resolver for each object, with equal arguments. Only the parent tells these calls
// apart.
func appSyncParent(body []byte) ([]string, error) {
	parent, err := rawjson.Member("source").Find(body)
	if errors.Is(err, rawjson.ErrAbsent) || string(parent) == "null" {
		return nil, nil
	}
	parent, err = canonical("/source", parent)
	return []string{string(parent)}, err
}

// appSyncAnonymous reports whether the payload has no identity, for example because the
// client used an API key.
func appSyncAnonymous(body []byte) bool {
	identity, err := rawjson.Member("identity").Find(body)
	return errors.Is(err, rawjson.ErrAbsent) || string(identity) == "null"
}

func appSyncCaller(body []byte, named []rawjson.Pointer) ([]string, error) {
	identity, err := rawjson.Member("identity").Find(body)
	switch {
	case len(named) > 0 && err == nil:
		texts, err := rawjson.Texts(identity, named)
		if err != nil {
			return nil, fmt.Errorf("/identity%w", err)
		}
		return append([]string{"named"}, texts...), nil
	case len(named) > 0:
		return nil, err
	case appSyncAnonymous(body):
		return []string{"api key"}, nil
	}
	m, err := rawjson.Object(identity)
	if err != nil {
		return nil, fmt.Errorf("/identity: %w", err)
	}
	text := func(name string) string {
		if err == nil && rawjson.Given(m[name]) && string(m[name]) != `""` {
			var s string
			if s, _, err = rawjson.Scalar(m[name]); err != nil {
				err = fmt.Errorf("/identity/%s: %w", name, err)
			}
			return s
		}
		return ""
	}
	id := jwtIdentity(text("issuer"), text("sub"))
	if id.Subject == "" {
		id, _ = iamIdentity(text("cognitoIdentityPoolId"), text("cognitoIdentityId"), text("userArn"))
	}
	if err == nil && id.Subject == "" {
		err = errors.New("/identity: it doesn't name the caller; name the caller by further pointers of AppSyncKey")
	}
	return []string{id.Kind, id.Subject}, err
}
