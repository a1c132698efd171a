package item

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/samekey/samekey/idem/store"
)

// A request or an answer is sealed in this form: the length of the head, the head as JSON, and the
// body as an unsealed record would store it.

// head holds a request or an answer, without the body. Unknown fields are ignored, so that later
// programs may add fields.
type head struct {
	Status   int                 `json:"s,omitempty"`
	Method   string              `json:"m,omitempty"`
	Path     []byte              `json:"p,omitempty"` // bytes, since a path need not be UTF-8
	Query    []byte              `json:"q,omitempty"`
	Header   map[string][][]byte `json:"h,omitempty"`
	Identity []string            `json:"i,omitempty"` // kind, subject
	Snapshot []byte              `json:"d,omitempty"`
	Zipped   bool                `json:"z,omitempty"`
	Overflow *sealedOverflow     `json:"o,omitempty"`
}

type sealedOverflow struct {
	Owner  string `json:"o,omitempty"`
	First  int64  `json:"n"` // written even if 0, so that the head's size doesn't show which body is the process's first
	Count  int    `json:"c"`
	Length int    `json:"l"`
	Zipped bool   `json:"z,omitempty"`
	SHA256 []byte `json:"d"`
}

func (h *head) pack(body []byte) []byte {
	js, _ := json.Marshal(h) // can't fail: the head has strings, numbers and bytes only
	b := make([]byte, 0, binary.MaxVarintLen32+len(js)+len(body))
	b = binary.AppendUvarint(b, uint64(len(js)))
	return append(append(b, js...), body...)
}

var errForm = errors.New("contents have an unknown form")

func unpack(plain []byte) (h head, body []byte, err error) {
	n, size := binary.Uvarint(plain)
	if size <= 0 || n > uint64(len(plain)-size) {
		return h, nil, errForm
	}
	plain = plain[size:]
	if err = json.Unmarshal(plain[:n], &h); err != nil {
		return h, nil, errForm
	}
	return h, plain[n:], nil
}

func answerHead(re *store.Response, over *store.Overflow, zipped bool) *head {
	return &head{Status: re.Status, Header: packHeader(re.Header), Zipped: zipped && over == nil, Overflow: packOverflow(over)}
}

func requestHead(in *store.Input, over *store.Overflow, zipped bool) *head {
	h := &head{
		Method: in.Method, Path: []byte(in.Path), Query: []byte(in.Query), Header: packHeader(in.Header), Snapshot: in.Snapshot,
		Zipped: zipped && over == nil, Overflow: packOverflow(over),
	}
	if in.Identity != (store.Identity{}) {
		h.Identity = []string{in.Identity.Kind, in.Identity.Subject}
	}
	return h
}

// unpackAnswer reads an answer from its opened contents. If the answer's body isn't
// stored in the record, unpackAnswer also returns the place of the body.
func unpackAnswer(plain []byte) (*store.Response, *store.Overflow, error) {
	h, body, err := unpack(plain)
	if err != nil {
		return nil, nil, err
	}
	if h.Status < minStatus || h.Status > maxStatus {
		return nil, nil, fmt.Errorf("status is %d", h.Status)
	}
	over, err := h.overflow()
	if err != nil {
		return nil, nil, err
	}
	body, err = h.unzip(body)
	return &store.Response{Status: h.Status, Header: unpackHeader(h.Header), Body: body}, over, err
}

func unpackRequest(plain []byte) (*store.Input, error) {
	h, body, err := unpack(plain)
	if err != nil {
		return nil, err
	}
	in := &store.Input{Method: h.Method, Path: string(h.Path), Query: string(h.Query), Header: unpackHeader(h.Header), Snapshot: h.Snapshot}
	switch len(h.Identity) {
	case 0:
	case 2:
		in.Identity = store.Identity{Kind: h.Identity[0], Subject: h.Identity[1]}
	default:
		return nil, errForm
	}
	if in.Overflow, err = h.overflow(); err != nil {
		return nil, err
	}
	in.Body, err = h.unzip(body)
	return in, err
}

func (h *head) unzip(body []byte) ([]byte, error) {
	switch {
	case h.Zipped:
		return Inflate(body, MaxStored)
	case len(body) == 0:
		return nil, nil
	}
	return body, nil
}

func packOverflow(o *store.Overflow) *sealedOverflow {
	if o == nil {
		return nil
	}
	return &sealedOverflow{Owner: o.Owner, First: o.First, Count: o.Count, Length: o.Length, Zipped: o.Zipped, SHA256: o.SHA256[:]}
}

func (h *head) overflow() (*store.Overflow, error) {
	s := h.Overflow
	if s == nil {
		return nil, nil
	}
	o := &store.Overflow{Owner: s.Owner, First: s.First, Count: s.Count, Length: s.Length, Zipped: s.Zipped, Sealed: s.Count > 0}
	if copy(o.SHA256[:], s.SHA256) != len(o.SHA256) || !sound(o) {
		return nil, errForm
	}
	return o, nil
}

func packHeader(h http.Header) map[string][][]byte {
	if len(h) == 0 {
		return nil
	}
	out := make(map[string][][]byte, len(h))
	for name, values := range h {
		for _, v := range values {
			out[name] = append(out[name], []byte(v))
		}
	}
	return out
}

func unpackHeader(h map[string][][]byte) http.Header {
	if len(h) == 0 {
		return nil
	}
	out := make(http.Header, len(h))
	for name, values := range h {
		for _, v := range values {
			out[name] = append(out[name], string(v))
		}
	}
	return out
}
