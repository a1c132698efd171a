package lambda

import (
	"errors"
	"fmt"

	"github.com/samekey/samekey/internal/base/rawjson"
)

// AppSyncKey makes the key of a call that AppSync makes to a direct Lambda resolver. The key
// consists of the field, the caller, and the client's key. The client sends its key in an
// argument, as with Shopify's @idempotent(key:). The parameter argument is a JSON Pointer that
// begins at the payload's arguments:
//
//	lambda.Direct[Charge, Receipt](lambda.AppSyncKey("/input/idempotencyKey"))
//
// A retry must have the same field, arguments and parent. The parent is the payload's source; a
// field of Query or Mutation has no parent. Headers, claims and the selection may differ and are
// not compared. In each replay AppSync applies the retry's selection to the first answer.
//
// The caller is one of these: the subject and issuer in the token of a user pool or an OpenID
// provider, a user of an identity pool, an IAM user, an account's root, or a person of IAM Identity
// Center. An API key doesn't name the caller: set [DirectOptions.Scope], or [idem.OneScope] if all
// callers are to share their keys. Otherwise an adapter of [Direct] refuses the call
// ([idem.ErrScope]).
//
// Two kinds of calls need further pointers, which name the caller and begin at the payload's
// identity. Without these pointers, both kinds are errors:
//   - Calls through a Lambda authorizer, which has no standard field for the caller. Use, for
//     example, AppSyncKey("/key", "/resolverContext/user").
//   - Calls by a session of any other role. The session may be a person, or one of many sessions of
//     a program. If each session is a caller, use AppSyncKey("/key", "/userArn").
//
// BatchInvoke calls are always errors.
//
// In GraphQL a failure may have the form of an answer. Set [idem.Options.Stored] to
// [GraphQLStored], so that such a failure isn't stored.
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

// appSyncField returns the resolved field's arguments, and the names of its parent type and of the
// field.
func appSyncField(body []byte) (field []string, arguments []byte, err error) {
	field, err1 := rawjson.Texts(body, []rawjson.Pointer{rawjson.Member("info", "parentTypeName"), rawjson.Member("info", "fieldName")})
	arguments, err2 := rawjson.Member("arguments").Find(body)
	if err := errors.Join(err1, err2); err != nil {
		return nil, nil, fmt.Errorf("not what AppSync hands to a direct resolver: %w", err)
	}
	return field, arguments, nil
}

// appSyncParent returns the parent of the resolved field, or nil for a field of Query or
// Mutation. The parent distinguishes the objects of a list: AppSync resolves the field of each
// object with the same arguments.
func appSyncParent(body []byte) ([]string, error) {
	parent, err := rawjson.Member("source").Find(body)
	if errors.Is(err, rawjson.ErrAbsent) || string(parent) == "null" {
		return nil, nil
	}
	parent, err = canonical("/source", parent)
	return []string{string(parent)}, err
}

// appSyncAnonymous reports whether AppSync knows no caller, for example because the client sent an
// API key.
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
