package doctortest

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// Version is the version of the library in the functions of [Good].
const Version = "v0.1.0"

var program = sync.OnceValues(func() ([]byte, error) { return Program("github.com/samekey/samekey", Version, "") })

// Program builds a Go program that requires a module, and returns the program in the
// zip file of a Lambda function. The argument replace is the right side of a replace
// directive in go.mod; "" means no directive.
func Program(module, version, replace string) (file []byte, err error) {
	dir, err := os.MkdirTemp("", "doctortest-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	with := ""
	if replace != "" {
		with = " => " + replace
	}
	for name, text := range map[string]string{
		"go.mod":                             "module example.com/orders\n\ngo 1.26\n\nrequire " + module + " " + version + "\n",
		"main.go":                            "package main\n\nimport _ \"" + module + "/idem\"\n\nfunc main() {}\n",
		"vendor/modules.txt":                 "# " + module + " " + version + with + "\n## explicit; go 1.26\n" + module + "/idem\n",
		"vendor/" + module + "/idem/idem.go": "package idem\n",
	} {
		if with != "" && name == "go.mod" {
			text += "\nreplace " + module + with + "\n"
		}
		if with != "" && name == "vendor/modules.txt" {
			text += "# " + module + with + "\n"
		}
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text), 0o600)); err != nil {
			return nil, err
		}
	}
	build := exec.Command("go", "build", "-mod=vendor", "-trimpath", "-buildvcs=false", "-ldflags=-s", "-o", "bootstrap", ".") //nolint:noctx // seconds
	build.Dir, build.Env = dir, append(os.Environ(), "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0", "GOOS=linux", "GOARCH=arm64")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	program, err := os.ReadFile(filepath.Join(dir, "bootstrap"))
	if err != nil {
		return nil, err
	}
	return Zip("bootstrap", program)
}

// Zip returns a zip file with one file.
func Zip(name string, content []byte) ([]byte, error) {
	var file bytes.Buffer
	z := zip.NewWriter(&file)
	w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
	if err != nil {
		return nil, err
	}
	_, err = w.Write(content)
	if err := errors.Join(err, z.Close()); err != nil {
		return nil, err
	}
	return file.Bytes(), nil
}

const codeHost = "code.example.com"

// World.code serves a function's zip file.
func (w *World) code(req *http.Request) (*http.Response, error) {
	if code := w.Refused["Code"]; code != "" {
		return w.answer(req, http.StatusForbidden, "application/xml", []byte(code), nil), nil
	}
	file, ok := w.Code[req.URL.Path[1:]]
	if !ok {
		var err error
		if file, err = program(); err != nil {
			return nil, err
		}
	}
	return w.answer(req, http.StatusOK, "application/zip", file, nil), nil
}
