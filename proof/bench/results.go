package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Results are proof/bench/results.json.
type Results struct {
	// Run is when, where and how the timings were taken. Calls, units, bytes and
	// dollars are the same in every run.
	Run     Run         `json:"run"`
	Prices  Prices      `json:"prices"`
	Paths   []Path      `json:"paths"`
	Inline  []Inline    `json:"inline"`
	Bodies  []Body      `json:"bodies"`
	Records []Size      `json:"records"`
	Library []Library   `json:"library"`
	SDK     []Versus    `json:"sdk"`
	Latency []Versus    `json:"latency"`
	Start   []Start     `json:"cold_start"`
	Sizes   []Binary    `json:"binaries"`
	Streams []Streaming `json:"streams"`
	// Recovery is of a client's retry. The completer's is in proof/crash-matrix.md.
	Recovery Recovery `json:"recovery"`

	// The other files of the folder.
	Peers   Peers   `json:"-"`
	Growth  Growth  `json:"-"`
	Passes  Passes  `json:"-"`
	Durable Durable `json:"-"`
}

// Run is the circumstances of the timings.
type Run struct {
	Command string `json:"command"`
	Date    string `json:"date"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	CPU     string `json:"cpu"`
	CPUs    int    `json:"cpus"`
	// Load is the machine's load average over a minute, before and after.
	Load [2]float64 `json:"load"`
	// Yardstick is the median time of a fixed piece of work (SHA-256 of 8 KB), in ns.
	Yardstick float64 `json:"yardstick_ns"`
}

// files are the results' files, and what each holds.
func (r *Results) files() map[string]any {
	return map[string]any{"results.json": r, "peers.json": &r.Peers, "growth.json": &r.Growth, "passes.json": &r.Passes}
}

// run is where the circumstances of a file's timings are.
func (r *Results) run(file string) *Run {
	switch file {
	case "peers.json":
		return &r.Peers.Run
	case "growth.json":
		return &r.Growth.Run
	case "passes.json":
		return &r.Passes.Run
	default:
		return &r.Run
	}
}

func load(folder string) (*Results, error) {
	r := new(Results)
	files := r.files()
	files["durable.json"] = &r.Durable
	for name, into := range files {
		b, err := os.ReadFile(filepath.Join(folder, name))
		if errors.Is(err, os.ErrNotExist) && into != any(&r.Durable) {
			continue // the first run writes it
		}
		if err == nil {
			err = json.Unmarshal(b, into)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return r, nil
}

func (r *Results) save(folder string) error {
	for name, from := range r.files() {
		b, err := json.MarshalIndent(from, "", "  ")
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), append(b, '\n'), 0o644) //nolint:gosec // a page's figures, for everybody
		}
		if err != nil {
			return err
		}
	}
	return nil
}
