package check

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// examination.blame keeps a, an answer that refuses a request because of its key, for
// the check named errors. The parameter code is the error code that the commerce
// contracts demand; "" if they demand none.
func (e *examination) blame(a *answer, code string) {
	a.code = code
	e.blamed = append(e.blamed, a)
}

// examination.errors judges the form of the refusals that blame has kept.
func (e *examination) errors(context.Context) error {
	if len(e.blamed) == 0 && !e.busy {
		return unseen("the API sent no error about a key")
	}
	for _, a := range e.blamed {
		mediaType, _, _ := strings.Cut(strings.ToLower(a.header.Get("Content-Type")), ";")
		problem := strings.TrimSpace(mediaType) == "application/problem+json"
		var body struct {
			Type, Title, Code string
			Error             struct{ Type string }
		}
		_ = json.Unmarshal(a.body, &body) // if the body is not JSON, its fields count as missing
		seen := fmt.Sprintf("an answer with status %d has the Content-Type %q", a.status, mediaType)
		if !problem || body.Code == "" || body.Type == "" || body.Title == "" {
			e.breaks("error-body", seen, Default)
		}
		if body.Error.Type == "" {
			e.breaks("error-body", seen, Stripe)
		}
		linked := strings.Contains(strings.ReplaceAll(a.header.Get("Link"), `"`, ""), "rel=describedby")
		if !linked && (!problem || body.Type == "" || body.Title == "") {
			e.breaks("error-body", seen, IETF)
		}
		if cache := a.header.Get("Cache-Control"); !strings.Contains(strings.ToLower(cache), "no-store") {
			e.breaks("error-cacheable", fmt.Sprintf("an answer with status %d has the Cache-Control %q", a.status, cache))
		}
	}
	return nil
}
