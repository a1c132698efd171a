package stack

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/samekey/samekey/internal/local/sam"
	"github.com/samekey/samekey/internal/servers/apigateway"
)

// jwtAuthorizer checks the claims of a JWT, but not the signature, since it doesn't
// fetch the issuer's keys. It is for one machine only.
func jwtAuthorizer(def sam.JWT) func(*http.Request) (*apigateway.Identity, error) {
	return func(r *http.Request) (*apigateway.Identity, error) {
		header := r.Header.Get(def.HeaderKey)
		token, ok := strings.CutPrefix(header, "Bearer ")
		if !ok {
			token = strings.TrimPrefix(header, "bearer ")
		}
		claims, err := readClaims(token)
		if err != nil {
			return nil, err
		}
		if err := checkClaims(claims, def, time.Now()); err != nil {
			return nil, err
		}
		scopes := strings.Fields(strings.Trim(claimText(claims["scope"]), "[]") + " " + strings.Trim(claimText(claims["scp"]), "[]"))
		var granted []string
		for _, s := range def.Scopes {
			if slices.Contains(scopes, s) {
				granted = append(granted, s)
			}
		}
		if len(def.Scopes) > 0 && len(granted) == 0 {
			return nil, fmt.Errorf("none of the scopes %v: %w", def.Scopes, apigateway.ErrForbidden)
		}
		out := make(map[string]string, len(claims))
		for name, v := range claims {
			out[name] = claimText(v)
		}
		return apigateway.JWT(out, granted...), nil
	}
}

func readClaims(token string) (map[string]any, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, errors.New("no JWT")
	}
	data, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil, fmt.Errorf("no JWT: %w", err)
	}
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.UseNumber()
	var claims map[string]any
	if err := dec.Decode(&claims); err != nil {
		return nil, fmt.Errorf("no JWT: %w", err)
	}
	return claims, nil
}

func checkClaims(claims map[string]any, def sam.JWT, now time.Time) error {
	if def.Issuer != "" && claimText(claims["iss"]) != def.Issuer {
		return fmt.Errorf("issuer is %q, not %q", claimText(claims["iss"]), def.Issuer)
	}
	if len(def.Audience) > 0 {
		audience := claims["aud"]
		if audience == nil {
			audience = claims["client_id"]
		}
		list, ok := audience.([]any)
		if !ok {
			list = []any{audience}
		}
		if !slices.ContainsFunc(list, func(a any) bool { return slices.Contains(def.Audience, claimText(a)) }) {
			return fmt.Errorf("audience is %v, not one of %v", audience, def.Audience)
		}
	}
	for name, wrong := range map[string]func(at time.Time) bool{
		"exp": func(at time.Time) bool { return !now.Before(at) },
		"nbf": now.Before,
	} {
		n, ok := claims[name].(json.Number)
		if !ok {
			if name == "exp" {
				return errors.New("no exp")
			}
			continue
		}
		seconds, err := n.Float64()
		if err != nil || wrong(time.Unix(int64(seconds), 0)) {
			return fmt.Errorf("%s is %s", name, n)
		}
	}
	return nil
}

// claimText returns a claim as an HTTP API passes it on: a list is put in brackets, with
// spaces between the values.
func claimText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		return v.String()
	case []any:
		parts := make([]string, 0, len(v))
		for _, e := range v {
			parts = append(parts, claimText(e))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case map[string]any:
		out, _ := json.Marshal(v) // came from JSON
		return string(out)
	default:
		return fmt.Sprint(v)
	}
}
