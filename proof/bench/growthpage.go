package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// picture is how a chart is shown.
type picture struct {
	id, title string
	x, y      axis
	means     string // to a user
}

func whole(v float64) string { return thousands(int(v)) }

// size is a number of bytes with its unit.
func size(v float64) string {
	for _, unit := range []string{"B", "KB", "MB"} {
		if v < 1000 {
			return strconv.FormatFloat(v, 'f', -1, 64) + " " + unit
		}
		v = math.Round(v / 1024)
	}
	return whole(v) + " GB"
}

// short4 is a number with four digits at most, but for large ones.
func short4(v float64) string {
	if v >= 1000 {
		return thousands(int(math.Round(v)))
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

var (
	dollarsAxis = axis{"dollars a million", false, short4}
	msAxis      = axis{"ms", false, short4}
)

// pictures are in the page's order.
var pictures = []picture{
	{
		"body-dollars", "the answer's size, in dollars",
		axis{"answer", true, decades},
		axis{"dollars a million", true, short4},
		"Up to about 4 KB after compression the answer is in the record; then each KB is a write unit. Keep large answers in S3, and store a link.",
	},
	{
		"body-time", "the answer's size, in time",
		axis{"answer", true, decades},
		axis{"ms", true, short4},
		"Medians of a new request and of its replay. A large answer is compressed, encoded and sent again with its retry.",
	},
	{
		"phases-dollars", "phases, in dollars",
		axis{"phases", false, whole},
		dollarsAxis,
		"Each phase costs its commit, and no more with their number. A phase without a write of yours costs half of one with a write. Your items' units come on top.",
	},
	{
		"phases-time", "phases, in time",
		axis{"phases", false, whole},
		msAxis,
		"Median of a new request. Each phase adds one call to DynamoDB, about a network's round trip on AWS.",
	},
	{
		"jobs-dollars", "jobs, in dollars",
		axis{"jobs staged by a request", false, whole},
		dollarsAxis,
		"Jobs wait in the record, so a request pays for its bytes, and the drain acknowledges all of them with one write. Queues and functions that take the jobs cost extra.",
	},
	{
		"callers-calls", "callers of one key, in calls",
		axis{"requests at once with one key", true, whole},
		axis{"calls to DynamoDB", true, whole},
		"All send the same request at once, and the handler works for 300 ms. It runs once. Each other request costs a refused claim, and with `InFlightWait` its reads.",
	},
	{
		"callers-time", "callers of one key, in time",
		axis{"requests at once with one key", true, whole},
		axis{"ms until all have an answer", true, whole},
		"With 409 or 202 the other requests have their answer at once, and the first has its own after its work; the clients that got a 409 come again. DynamoDB Local has one writer, which many claims keep busy.",
	},
	{
		"records-time", "records in the table, in time",
		axis{"records in the table", true, whole},
		msAxis,
		"Medians, in turns with as many calls of the smallest possible items. Samekey finds a record by its key: a request's time should not grow with the table.",
	},
}

// decades are sizes on an axis of powers of ten.
func decades(v float64) string {
	switch {
	case v >= 1e6:
		return short4(v/1e6) + " MB"
	case v >= 1e3:
		return short4(v/1e3) + " KB"
	default:
		return short4(v) + " B"
	}
}

func (g *Growth) chart(id string) (Chart, bool) {
	i := slices.IndexFunc(g.Charts, func(c Chart) bool { return c.ID == id })
	if i < 0 {
		return Chart{}, false
	}
	return g.Charts[i], true
}

// tables are the growth's part of the page.
func (g *Growth) tables() (all []table) {
	for _, p := range pictures {
		c, ok := g.chart(p.id)
		if !ok {
			continue
		}
		t := table{
			title: "Growth: " + p.title,
			text:  fmt.Sprintf("![%s, by %s](%s)\n\n%s", p.y.name, p.x.name, "images/growth-"+p.id+".svg", p.means),
			head:  []string{p.x.name},
		}
		if len(all) == 0 {
			t.text = fmt.Sprintf(`The figures are of %s (%s), with a load of %.1f before and %.1f after it. Dollars and units are counted, and the same in every run. Times
are medians on this machine, on tables without a stream.`, g.Run.Date, "`"+g.Run.Command+"`", g.Run.Load[0], g.Run.Load[1]) + "\n\n" + t.text
		}
		if p.id == "records-time" {
			t.text += " " + c.flatness()
		}
		for _, l := range c.Lines {
			t.head = append(t.head, l.Name+", "+p.y.name)
		}
		for i, at := range c.Lines[0].Points {
			row := []string{p.x.text(at[0])}
			if p.x.name == "answer" {
				row[0] = size(at[0])
			}
			for _, l := range c.Lines {
				row = append(row, short4(l.Points[i][1]))
			}
			t.rows = append(t.rows, row)
		}
		all = append(all, t)
	}
	return all
}

// flatness says whether a new request's time over its floor depends on the records.
func (c *Chart) flatness() string {
	ratios := make([]string, len(c.Lines[0].Points))
	for i, p := range c.Lines[0].Points {
		ratios[i] = fmt.Sprintf("%.2f", p[1]/c.Lines[1].Points[i][1])
	}
	return "The ratios of a new request are " + strings.Join(ratios, ", ") + "."
}

// dearSmall returns the size up to 64 KB at which a replay is dearest, its dollars, and
// those at 64 KB.
func (g *Growth) dearSmall() (at, dollars, later float64) {
	c, _ := g.chart("body-dollars")
	for _, l := range c.Lines {
		if l.Name != "replay, doesn't compress" {
			continue
		}
		for _, p := range l.Points {
			if p[0] < 64<<10 && p[1] > dollars {
				at, dollars = p[0], p[1]
			}
			if p[0] == 64<<10 {
				later = p[1]
			}
		}
	}
	return at, dollars, later
}

// plots are the pictures by their files.
func (g *Growth) plots() map[string]string {
	files := make(map[string]string)
	for _, p := range pictures {
		if c, ok := g.chart(p.id); ok {
			files["growth-"+p.id+".svg"] = plot("Growth with "+p.title, p.x, p.y, c.Lines)
		}
	}
	return files
}

// savePlots writes the pictures into folder/images.
func (g *Growth) savePlots(folder string) error {
	for name, svg := range g.plots() {
		if err := os.WriteFile(filepath.Join(folder, "images", name), []byte(strings.TrimSpace(svg)+"\n"), 0o644); err != nil { //nolint:gosec // for everybody
			return err
		}
	}
	return nil
}
