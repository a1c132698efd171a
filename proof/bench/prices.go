package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
)

// Prices are proof/bench/prices.json: a price list of one day.
type Prices struct {
	Date   string `json:"date"` // when the list was read
	Source string `json:"source"`
	Region string `json:"region"`
	Mode   string `json:"mode"`
	// Write and Read are dollars for a million request units.
	Write float64 `json:"write_units_per_million"`
	Read  float64 `json:"read_units_per_million"`
}

func loadPrices(file string) (p Prices, _ error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(b, &p); err != nil {
		return p, fmt.Errorf("%s: %w", file, err)
	}
	if p.Write <= 0 || p.Read <= 0 || p.Date == "" {
		return p, fmt.Errorf("%s: prices or date are missing", file)
	}
	return p, nil
}

// of is the price of a million times these units, rounded to a hundredth of a cent.
func (p Prices) of(write, read float64) float64 {
	return math.Round((write*p.Write+read*p.Read)*1e4) / 1e4
}

// Durable is proof/bench/durable.json: what AWS says of its durable functions, and what
// others report. Nothing of it was measured here.
type Durable struct {
	Date   string `json:"date"`
	Source string `json:"source"`
	// Price is dollars for a million operations. A run of k steps has k operations and
	// its start.
	Price float64 `json:"dollars_per_million_operations"`
	// Steps are the least and the greatest median of a step's time in reports, in ms.
	Steps       [2]float64 `json:"reported_step_ms"`
	StepsSource string     `json:"reported_step_source"`
}

// of is the price of a million runs of k steps.
func (d Durable) of(k int) float64 { return float64(1+k) * d.Price }
