package webhook

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"

	"github.com/samekey/samekey/idem"
)

var _ http.Handler = (*Handler)(nil)

// ServeHTTP implements [http.Handler] by [Handler.Serve]. No middleware may read the body
// before ServeHTTP.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req := idem.Request{Method: r.Method, Path: r.URL.EscapedPath(), Header: r.Header}
	var resp idem.Response
	var err error
	if req.Body, err = h.readBody(w, r); err != nil {
		resp = h.Refuse(r.Context(), req, err)
	} else {
		resp = h.Serve(r.Context(), req).Response
	}
	maps.Copy(w.Header(), resp.Header)
	w.WriteHeader(resp.Status)
	_, _ = w.Write(resp.Body) // if the write fails, the provider is gone, and will try again
}

func (h *Handler) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.maxBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, tooLarge(h.maxBody)
	}
	if err == nil && int64(len(body)) < r.ContentLength {
		err = errors.New("another reader has already read it")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the body can't be read: %w", ErrMalformed, err)
	}
	return body, nil
}
