package check

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// examination.cors sends a browser's preflight request. Then cors checks whether a web
// page could read the answers to earlier requests.
func (e *examination) cors(ctx context.Context) error {
	a, err := e.preflight(ctx)
	if err != nil {
		return err
	}
	method, header := a.header.Get("Access-Control-Allow-Methods"), a.header.Get("Access-Control-Allow-Headers")
	simple := e.template.Method == http.MethodPost // CORS allows POST without Access-Control-Allow-Methods
	switch {
	case !a.ok() || !e.allows(a):
		e.breaks("cors-preflight", fmt.Sprintf("%d, Access-Control-Allow-Origin %q", a.status, a.header.Get("Access-Control-Allow-Origin")))
	case !listed(header, keyHeader):
		e.breaks("cors-preflight", fmt.Sprintf("Access-Control-Allow-Headers %q", header))
	case !simple && !listed(method, e.template.Method):
		e.breaks("cors-preflight", fmt.Sprintf("Access-Control-Allow-Methods %q", method))
	}
	for _, a := range slices.Concat(e.answers, e.blamed) {
		if !e.allows(a) {
			e.breaks("cors-hidden", fmt.Sprintf("an answer with status %d has the Access-Control-Allow-Origin %q", a.status, a.header.Get("Access-Control-Allow-Origin")))
			continue
		}
		exposed := a.header.Get("Access-Control-Expose-Headers")
		for _, name := range []string{replayedHeader, expiresHeader, "Retry-After"} {
			if a.header.Get(name) != "" && !listed(exposed, name) {
				e.breaks("cors-unexposed", fmt.Sprintf("an answer with status %d has %s but doesn't expose it: Access-Control-Expose-Headers is %q", a.status, name, exposed))
			}
		}
	}
	return nil
}

// examination.preflight sends a preflight request without the template's headers, as
// browsers do.
func (e *examination) preflight(ctx context.Context) (*answer, error) {
	return e.send(ctx, call{method: http.MethodOptions, bare: true, header: http.Header{
		"Access-Control-Request-Method":  {e.template.Method},
		"Access-Control-Request-Headers": {"content-type,idempotency-key"},
	}})
}

// examination.allows reports whether a page of the template's Origin may read the
// answer a.
func (e *examination) allows(a *answer) bool {
	got := a.header.Get("Access-Control-Allow-Origin")
	return got == "*" || got == e.template.Origin
}

// listed reports whether list, the value of a CORS header, contains name or "*".
func listed(list, name string) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(s string) bool {
		s = strings.TrimSpace(s)
		return s == "*" || strings.EqualFold(s, name)
	})
}
