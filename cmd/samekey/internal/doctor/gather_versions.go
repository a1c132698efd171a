package doctor

import (
	"archive/zip"
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// library is the path of the root module.
const library = "github.com/samekey/samekey"

// largest is Lambda's limit on the unpacked size of a function's zip file.
const largest = 250 << 20

var errForeign = errors.New("the program doesn't contain Samekey")

// askVersions reads the library's version from the build info in each function's program.
// Only zip files of Go programs have a readable version.
func (f *Facts) askVersions(ctx context.Context, c Clients) {
	for _, fn := range f.Functions {
		out, err := c.Lambda.GetFunction(ctx, &lambda.GetFunctionInput{FunctionName: aws.String(fn.qualified())})
		switch {
		case err != nil:
			f.miss(Code, fmt.Sprintf("%s: %s", fn.Name, reason(err)))
			continue
		case out.Configuration != nil && out.Configuration.PackageType == lambdatypes.PackageTypeImage:
			fn.Unversioned = "is a container image"
			continue
		case out.Configuration != nil && !strings.HasPrefix(string(out.Configuration.Runtime), "provided"):
			continue // no Go program
		case out.Code == nil || out.Code.Location == nil:
			f.miss(Code, fn.Name+": AWS gave no URL of the code")
			continue
		}
		file, err := download(ctx, c.HTTP, *out.Code.Location)
		if err != nil {
			f.miss(Code, fmt.Sprintf("%s: its code can't be read: %v", fn.Name, err))
			continue
		}
		fn.Version, err = programVersion(file)
		if err != nil && !errors.Is(err, errForeign) {
			fn.Unversioned = err.Error()
		}
	}
}

// download gets a function's zip file. Errors omit the URL, because anyone who has the
// URL can read the file for ten minutes.
func download(ctx context.Context, client aws.HTTPClient, from string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, http.NoBody)
	if err != nil {
		return nil, errors.New("the code's address is not a URL")
	}
	resp, err := client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%s doesn't answer", req.URL.Host)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %d", req.URL.Host, resp.StatusCode)
	}
	file, err := io.ReadAll(io.LimitReader(resp.Body, largest))
	if err != nil {
		return nil, fmt.Errorf("%s sent only a part of the code", req.URL.Host)
	}
	return file, nil
}

// programVersion returns the version of the library in a zip file's bootstrap. If the
// version is unknown, the error is the reason.
func programVersion(file []byte) (string, error) {
	z, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return "", errors.New("is not a zip file")
	}
	b, err := z.Open("bootstrap")
	if err != nil {
		return "", errors.New("has no file named bootstrap")
	}
	program, err := io.ReadAll(io.LimitReader(b, largest))
	if err := errors.Join(err, b.Close()); err != nil {
		return "", errors.New("has a bootstrap file that can't be read")
	}
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return "", errors.New("has a bootstrap file that lacks the build info of a Go program")
	}
	return versionIn(info)
}

// versionIn returns the version of the library in a program. The library is the program's
// main module, as in samekey-worker, or a module that the program requires. A library
// that was built from a checkout has no version.
func versionIn(info *debug.BuildInfo) (string, error) {
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path != library {
			continue
		}
		version := m.Version
		if m.Replace != nil { // a fork, or a checkout
			version = m.Replace.Version
		}
		if version == "" || version == "(devel)" || strings.HasSuffix(version, "+dirty") {
			return "", errors.New("was built from a checkout and has no version")
		}
		if m.Replace != nil {
			version = m.Replace.Path + " " + version
		}
		return version, nil
	}
	return "", errForeign
}
