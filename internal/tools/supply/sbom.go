package main

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// writeBills writes the bill of materials of each binary into the folder dir. Each bill
// is named after its binary, or after the binary's folder if the binary is called
// bootstrap. If there is only one binary and dir ends in .json, dir is the bill's file.
func writeBills(out io.Writer, dir string, binaries []string) error {
	if len(binaries) == 0 {
		return errors.New("sbom: name the binaries")
	}
	file := ""
	if strings.HasSuffix(dir, ".json") && len(binaries) == 1 {
		dir, file = filepath.Split(dir)
	}
	if err := os.MkdirAll(filepath.Clean(dir), 0o750); err != nil { //nolint:gosec // where the caller wants it
		return err
	}
	for _, path := range binaries {
		name := filepath.Base(path)
		if name == "bootstrap" {
			name = filepath.Base(filepath.Dir(path))
		}
		bill, err := billOf(name, path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		to := filepath.Join(dir, cmp.Or(file, name+".cdx.json"))
		if err := encode(to, bill); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %d modules\n", to, len(*bill.Components))
	}
	return nil
}

func encode(path string, bill *cdx.BOM) (err error) {
	f, err := os.Create(path) //nolint:gosec // where the caller wants it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bill, cdx.SpecVersion1_6)
}

// billOf returns the bill of a binary, with the modules that the binary itself lists.
// The bill has neither a time nor a random number, so that equal binaries have equal
// bills.
func billOf(name, path string) (*cdx.BOM, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(path) //nolint:gosec // as the caller wants
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(raw)
	licences, err := licencesOf(info)
	if err != nil {
		return nil, err
	}
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	components := []cdx.Component{{
		BOMRef: "go", Type: cdx.ComponentTypeLibrary, Name: "std", Version: goVersion, PackageURL: "pkg:golang/std@" + goVersion,
		Licenses: &cdx.Licenses{{License: &cdx.License{ID: "BSD-3-Clause"}}},
	}}
	needs := []string{"go"}
	for _, m := range info.Deps {
		if m.Replace != nil && !strings.HasPrefix(m.Replace.Path, ".") { // a path that begins with a dot is a folder of this repository
			m = m.Replace
		}
		purl := "pkg:golang/" + m.Path + "@" + m.Version
		c := cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: purl}
		if m.Sum != "" { // not a Hash: a Hash is of one file, and a checksum of go.sum is of many
			c.Properties = &[]cdx.Property{{Name: "go.sum", Value: m.Sum}}
		}
		if licence := licences[m.Path]; licence != "" {
			c.Licenses = &cdx.Licenses{{Expression: licence}}
		}
		components, needs = append(components, c), append(needs, purl)
	}
	bill := cdx.NewBOM()
	bill.Metadata = &cdx.Metadata{Component: &cdx.Component{
		BOMRef: name, Type: cdx.ComponentTypeApplication, Name: name, Version: info.Main.Version,
		Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
		Properties: &[]cdx.Property{{Name: "path", Value: info.Path}, {Name: "settings", Value: settings(info)}},
	}}
	bill.Components = &components
	bill.Dependencies = &[]cdx.Dependency{{Ref: name, Dependencies: &needs}}
	return bill, nil
}

func settings(info *debug.BuildInfo) string {
	all := make([]string, 0, len(info.Settings))
	for _, s := range info.Settings {
		all = append(all, s.Key+"="+s.Value)
	}
	return strings.Join(all, " ")
}

// licencesOf returns the licences of a binary's modules by their paths. A module is
// left out if it isn't in the module cache, or if its licence is unknown or not
// allowed.
func licencesOf(info *debug.BuildInfo) (map[string]string, error) {
	cache, err := moduleCache()
	if err != nil {
		return nil, err
	}
	licences := make(map[string]string)
	for _, m := range info.Deps {
		if strings.HasPrefix(m.Path, ours) {
			licences[m.Path] = "Apache-2.0" // LICENSE
			continue
		}
		dir, err := cachedDir(cache, m.Path, m.Version)
		if err != nil {
			return nil, err
		}
		if licence, err := licenceOf(dir); err == nil {
			licences[m.Path] = licence
		}
	}
	return licences, nil
}
