package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
)

// tap is a server on loopback that passes requests on to DynamoDB Local, and keeps
// everything that is written to tables of records.
type tap struct {
	url    string
	server *http.Server

	mu      sync.Mutex
	records map[string]bool // tables of records
	seen    map[[16]byte]bool
	file    *os.File
	out     *bufio.Writer
	err     error
}

func openTap(endpoint, path string) (*tap, error) {
	to, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // loopback
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	t := &tap{url: "http://" + ln.Addr().String(), records: make(map[string]bool), seen: make(map[[16]byte]bool), file: f, out: bufio.NewWriterSize(f, 1<<20)}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxConnsPerHost, base.MaxIdleConnsPerHost = 64, 64                                                                                                                  // it resets connections beyond some hundreds
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host }, Transport: base, ErrorLog: log.New(io.Discard, "", 0)} // clients that went away
	t.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {                                                                         //nolint:gosec // loopback, in a test run
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler) //nolint:forbidigo // the client has gone
		}
		_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		t.note(op, body)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		proxy.ServeHTTP(w, r)
	})}
	go func() { _ = t.server.Serve(ln) }()
	return t, nil
}

// userTable ends the names of the tables that internal/testkit/tabletest makes for users: their
// key is that of a record.
const userTable = "-app"

// write is a write to a table, in any operation.
type write struct{ TableName string }

func (t *tap) note(op string, body []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch op {
	case "CreateTable":
		var in struct {
			TableName string
			KeySchema []struct{ AttributeName string }
		}
		if json.Unmarshal(body, &in) != nil {
			return
		}
		users := strings.HasSuffix(in.TableName, userTable)
		if !users && len(in.KeySchema) == 1 && in.KeySchema[0].AttributeName == "pk" {
			t.records[in.TableName] = true
		}
	case "PutItem", "UpdateItem":
		var w write
		if json.Unmarshal(body, &w) == nil && t.records[nameOf(w.TableName)] {
			t.texts(body)
		}
	case "TransactWriteItems":
		var in struct{ TransactItems []map[string]json.RawMessage }
		_ = json.Unmarshal(body, &in)
		for _, item := range in.TransactItems {
			for _, raw := range item {
				var w write
				if json.Unmarshal(raw, &w) == nil && t.records[nameOf(w.TableName)] {
					t.texts(raw)
				}
			}
		}
	case "BatchWriteItem":
		var in struct{ RequestItems map[string]json.RawMessage }
		_ = json.Unmarshal(body, &in)
		for table, raw := range in.RequestItems {
			if t.records[nameOf(table)] {
				t.texts(raw)
			}
		}
	}
}

// nameOf is a table's name, also of its ARN.
func nameOf(table string) string { return table[strings.LastIndex(table, "/")+1:] }

// texts keeps all texts of a write: names, strings, and the bytes of binaries.
func (t *tap) texts(raw []byte) {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.err = errors.Join(t.err, err)
		return
	}
	var walk func(v any, name string)
	walk = func(v any, name string) {
		switch v := v.(type) {
		case map[string]any:
			for k, el := range v {
				t.keep([]byte(k))
				walk(el, k)
			}
		case []any:
			for _, el := range v {
				walk(el, name)
			}
		case string:
			if b, err := base64.StdEncoding.DecodeString(v); name == "B" && err == nil {
				t.keep(b)
				return
			}
			t.keep([]byte(v))
		}
	}
	walk(v, "")
}

func (t *tap) keep(text []byte) {
	full := sha256.Sum256(text)
	sum := [16]byte(full[:16])
	if t.seen[sum] {
		return
	}
	t.seen[sum] = true
	var n [4]byte
	binary.BigEndian.PutUint32(n[:], uint32(len(text)))
	_, _ = t.out.Write(n[:])
	_, err := t.out.Write(text)
	t.err = errors.Join(t.err, err)
}

func (t *tap) close() error {
	err := t.server.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	return errors.Join(t.err, err, t.out.Flush(), t.file.Close())
}

// each calls fn with every text that a tap has kept.
func each(path string, fn func([]byte)) (n int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // it was read
	for in := bufio.NewReaderSize(f, 1<<20); ; n++ {
		var head [4]byte
		if _, err := io.ReadFull(in, head[:]); errors.Is(err, io.EOF) {
			return n, nil
		} else if err != nil {
			return n, err
		}
		text := make([]byte, binary.BigEndian.Uint32(head[:]))
		if _, err := io.ReadFull(in, text); err != nil {
			return n, err
		}
		fn(text)
	}
}
