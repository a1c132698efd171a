package stack

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
)

// lambdaArch maps a GOARCH to the architecture's name in Lambda and in the Makefile.
var lambdaArch = map[string]string{"amd64": "x86_64", "arm64": "arm64"}

var elfArch = map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}

// checkBinary returns an error if a bootstrap can't be run here. It accepts every
// executable that is not an ELF file, such as a script.
func checkBinary(path string) error {
	advice := "build it for this machine, as with make build"
	if arch := lambdaArch[runtime.GOARCH]; arch != "" {
		advice += " ARCH=" + arch
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no %s: %s", path, advice)
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("%s is not a program", path)
	}
	f, err := elf.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // read only
	if arch := elfArch[f.Machine]; runtime.GOOS != "linux" || arch != runtime.GOARCH {
		return fmt.Errorf("%s is built for %s on linux, but this machine is %s on %s: %s", path, f.Machine, runtime.GOARCH, runtime.GOOS, advice)
	}
	return nil
}
