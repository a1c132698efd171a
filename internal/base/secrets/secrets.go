// Package secrets recognises credentials, so that they can be left out of stored requests.
package secrets

import "strings"

// Named reports whether name is the name of a credential, such as a token, a password
// or a signature. The name is that of a query parameter or of an authorizer's value.
func Named(name string) bool {
	name = strings.NewReplacer("-", "", "_", "", ".", "").Replace(strings.ToLower(name))
	for _, part := range []string{"token", "secret", "password", "passwd", "authorization", "apikey", "accesskey", "privatekey", "signature", "credential", "cookie", "jwt"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return name == "sig" || name == "auth" || name == "bearer"
}

// Token reports whether a text has the form of a JWT, or of an Authorization header's
// value with the scheme Bearer, Basic or DPoP.
func Token(text string) bool {
	scheme, _, ok := strings.Cut(text, " ")
	if ok && (strings.EqualFold(scheme, "bearer") || strings.EqualFold(scheme, "basic") || strings.EqualFold(scheme, "dpop")) {
		return true
	}
	return strings.HasPrefix(text, "eyJ") && strings.Count(text, ".") >= 2 && !strings.ContainsAny(text, " \t\n")
}
